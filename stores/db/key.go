package db

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"witan/kernel"
)

const (
	keyBytes    = 32
	keyringWait = 2 * time.Second // a hanging key service must not hang us
	service     = "witan"
	ringLabel   = "Witan history"
)

// errNoEntry says that a keyring was asked and does not have the key.
var errNoEntry = errors.New("the keyring has no such entry")

// KeyFileEnv names the variable that overrides where the key file is.
const KeyFileEnv = "WITAN_KEY_FILE"

// keyFile is where the key of a data directory is kept without a keyring:
// outside of the directory, so that a copy of it is worth nothing alone.
func keyFile(id string) (string, error) {
	if p := os.Getenv(KeyFileEnv); p != "" {
		return filepath.Abs(p)
	}
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" {
		var err error
		if base, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(base, "witan", "keys", id+".key"), nil
}

// newKey makes the master key of a new directory and stores it.
func newKey(f *Format) ([]byte, error) {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if os.Getenv(KeyFileEnv) == "" && ringSet(f.ID, key) == nil {
		if got, err := ringGet(f.ID); err == nil && bytes.Equal(got, key) {
			f.Key = "keyring"
			return key, nil
		}
	}
	path, err := keyFile(f.ID)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, kernel.E("db.newKey", kernel.ReadOnly, err, "the folder for the key cannot be made").WithNext("set %s, or encryption = false", KeyFileEnv)
	}
	f.Key = "file"
	if old, err := readKey(path); err == nil { // a key that was shared on purpose
		return old, nil
	}
	if err := WriteFile(path, []byte(hex.EncodeToString(key)+"\n")); err != nil {
		return nil, kernel.E("db.newKey", kernel.ReadOnly, err, "the key file cannot be written").WithNext("set %s, or encryption = false", KeyFileEnv)
	}
	return key, nil
}

func readKey(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("%s does not hold a key", path)
	}
	return key, nil
}

// keyCheck is a value that only the holder of the key can compute.
func keyCheck(master []byte) string { return hex.EncodeToString(subkey(master, "check")[:8]) }

// loadKey finds the key of an existing directory. Nothing is made up, and a key
// of another directory is refused before anything is opened with it.
func loadKey(f Format) ([]byte, error) {
	key, err := findKey(f)
	if err == nil && keyCheck(key) != f.KeyCheck {
		return nil, kernel.E("db.loadKey", kernel.ReadOnly, nil, "the key that was found belongs to another history").
			WithNext("bring back the key of this one, or point %s at it; nothing was changed", KeyFileEnv)
	}
	return key, err
}

func findKey(f Format) ([]byte, error) {
	const op = "db.loadKey"
	if f.Key == "keyring" && os.Getenv(KeyFileEnv) == "" {
		key, err := ringGet(f.ID)
		switch {
		case err == nil && len(key) == keyBytes:
			return key, nil
		case errors.Is(err, errNoEntry):
			return nil, kernel.E(op, kernel.ReadOnly, err, "the key of this history is not in the keyring").
				WithNext("bring back the entry %s/%s of the keyring; nothing was changed", service, f.ID)
		}
		return nil, kernel.E(op, kernel.ReadOnly, err, "the keyring that holds the key of this history cannot be read").
			WithNext("unlock the keyring, or run where the desktop session is, and try again; nothing was changed")
	}
	path, err := keyFile(f.ID)
	if err != nil {
		return nil, err
	}
	key, err := readKey(path)
	if err != nil {
		return nil, kernel.E(op, kernel.ReadOnly, err, "the key of this history cannot be read").
			WithNext("bring %s back, or point %s at it; nothing was changed", path, KeyFileEnv)
	}
	return key, nil
}

// subkey derives the key for one use.
func subkey(master []byte, use string) []byte {
	k, err := hkdf.Key(sha256.New, master, nil, "witan/"+use+"/1", keyBytes)
	if err != nil {
		panic(err) // only for impossible lengths
	}
	return k
}

// KeyLocation says in words where the key is.
func KeyLocation(f Format) string {
	switch {
	case !f.Encryption:
		return "history is not encrypted (encryption = false)"
	case f.Key == "keyring":
		return "history is encrypted; the key is in the system's keyring as " + service + "/" + f.ID
	}
	path, _ := keyFile(f.ID)
	return "history is encrypted; there is no keyring, the key is in the file " + path
}

// PackKey is the key of the pack files of a directory that is not open.
func PackKey(f Format) ([]byte, error) {
	if !f.Encryption {
		return nil, nil
	}
	m, err := loadKey(f)
	if err != nil {
		return nil, err
	}
	return subkey(m, "packs"), nil
}
