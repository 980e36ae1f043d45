package db

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"witan/kernel"
)

// Schema is the version of the stored format.
const Schema = 1

// Format is the FORMAT file: what must not change between two opens.
type Format struct {
	Schema     int    `json:"schema"`
	ID         string `json:"id"` // names the key of this directory
	Encryption bool   `json:"encryption"`
	Key        string `json:"key"`                 // keyring, file or none
	KeyCheck   string `json:"key_check,omitempty"` // tells another key from the right one
	Memtable   int64  `json:"memtable"`
	Sum        string `json:"sum"` // SHA-256 of the rest
}

const formatFile = "FORMAT"

func (f Format) sum() string {
	f.Sum = ""
	b, _ := json.Marshal(f)
	return kernel.SumDomain("format/1", b).String()
}

// ReadFormat reads DIR/FORMAT. NotFound means that the directory is new.
func ReadFormat(dir string) (Format, error) {
	const op = "db.ReadFormat"
	var f Format
	b, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, "db")); err == nil {
			return f, kernel.E(op, kernel.Corrupt, nil, "%s holds data but FORMAT is gone", dir).WithNext("restore FORMAT from a backup; nothing was changed")
		}
		return f, kernel.E(op, kernel.NotFound, nil, "%s is not a data directory", dir)
	}
	if err != nil {
		return f, kernel.E(op, kernel.ReadOnly, err, "FORMAT cannot be read").WithNext("check the permissions of %s", dir)
	}
	var probe struct {
		Schema int `json:"schema"`
	}
	if json.Unmarshal(b, &probe) == nil && probe.Schema > Schema {
		return f, kernel.E(op, kernel.Newer, nil, "%s has schema %d and this version knows %d", dir, probe.Schema, Schema).
			WithNext("use a witan whose version shows schema %d; nothing was changed", probe.Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil || f.Sum != f.sum() || !bytes.Equal(bytes.TrimSpace(b), f.bytes()) {
		return f, kernel.E(op, kernel.Corrupt, nil, "%s is damaged", filepath.Join(dir, formatFile)).WithNext("restore it from a backup; nothing was changed")
	}
	return f, nil
}

func (f Format) bytes() []byte {
	b, _ := json.Marshal(f)
	return b
}

func newFormat(encryption bool) (Format, error) {
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return Format{}, err
	}
	f := Format{Schema: Schema, ID: hex.EncodeToString(id[:]), Encryption: encryption, Key: "none", Memtable: memtable}
	return f, nil
}

func (f Format) write(dir string) error {
	f.Sum = f.sum()
	return WriteFile(filepath.Join(dir, formatFile), append(f.bytes(), '\n'))
}

// WriteFile replaces path atomically and durably: *.tmp, fsync, rename, fsync of the folder.
func WriteFile(path string, b []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes a rename in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) {
		return err
	}
	return nil
}
