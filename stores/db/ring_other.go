//go:build !linux

package db

import (
	"errors"
	"time"

	"github.com/99designs/keyring"
)

// ring opens the system's keyring, if there is one that asks nothing.
func ring() (keyring.Keyring, error) {
	return keyring.Open(keyring.Config{ServiceName: service, KeychainTrustApplication: true,
		AllowedBackends: []keyring.BackendType{keyring.KeychainBackend, keyring.WinCredBackend}})
}

// ringGet reads the key of a data directory from the keyring.
func ringGet(id string) ([]byte, error) {
	return timed(func() ([]byte, error) {
		r, err := ring()
		if err != nil {
			return nil, err
		}
		item, err := r.Get(id)
		if errors.Is(err, keyring.ErrKeyNotFound) {
			err = errNoEntry
		}
		return item.Data, err
	})
}

// ringSet stores the key of a data directory in the keyring.
func ringSet(id string, key []byte) error {
	_, err := timed(func() ([]byte, error) {
		r, err := ring()
		if err != nil {
			return nil, err
		}
		return nil, r.Set(keyring.Item{Key: id, Data: key, Label: ringLabel, Description: "encryption key"})
	})
	return err
}

// timed bounds a call into the keyring.
func timed(f func() ([]byte, error)) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	c := make(chan result, 1)
	go func() { b, err := f(); c <- result{b, err} }()
	t := time.NewTimer(keyringWait)
	defer t.Stop()
	select {
	case r := <-c:
		return r.b, r.err
	case <-t.C:
		return nil, errors.New("the keyring does not answer")
	}
}
