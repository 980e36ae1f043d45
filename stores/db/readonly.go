package db

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
)

// View opens the database of dir for reading without changing a byte of it. The
// caller holds the lock, or dir is a copy. A database that was not closed is
// copied to a temporary folder first, because opening it means replaying its logs.
func View(dir string, log *slog.Logger) (*DB, func() error, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f, err := ReadFormat(dir)
	if err != nil {
		return nil, nil, err
	}
	d := &DB{Dir: dir, Format: f, free: free}
	if f.Encryption {
		if d.master, err = loadKey(f); err != nil {
			return nil, nil, err
		}
	}
	if err := checkTails(dir, knownTables(dir)); err != nil {
		return nil, nil, err
	}
	opt := d.badgerOptions(log)
	cleanup := func() error { return nil }
	if _, err := os.Stat(d.path(sealFile)); err == nil {
		opt = opt.WithReadOnly(true).WithBypassLockGuard(true)
	} else {
		tmp, err := os.MkdirTemp("", "witan-check-")
		if err != nil {
			return nil, nil, err
		}
		cleanup = func() error { return os.RemoveAll(tmp) }
		if err := copyFiles(d.path("db"), tmp); err != nil {
			cleanup()
			return nil, nil, err
		}
		opt = opt.WithDir(tmp).WithValueDir(tmp)
	}
	if d.DB, err = badger.Open(opt); err != nil {
		cleanup()
		return nil, nil, openError(dir, err)
	}
	return d, func() error {
		err := d.DB.Close()
		if cerr := cleanup(); err == nil {
			err = cerr
		}
		return err
	}, nil
}

// CheckTables verifies every block of every table and says what does not hold.
// Badger panics on some damaged tables before it compares a checksum.
func (d *DB) CheckTables() (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = "a table is damaged"
		}
	}()
	if err := d.DB.VerifyChecksum(); err != nil {
		return "a table is damaged: " + err.Error()
	}
	return ""
}

// copyFiles copies the plain files of a folder, keeping holes as holes.
func copyFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == "LOCK" || strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return kernel.E("db.copyFiles", kernel.Internal, err, "%s cannot be copied", e.Name())
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	var size int64
	for {
		n, err := in.Read(buf)
		if !bytes.Equal(buf[:n], nothing[:n]) {
			if _, werr := out.WriteAt(buf[:n], size); werr != nil {
				out.Close()
				return werr
			}
		}
		size += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			out.Close()
			return err
		}
	}
	if err := out.Truncate(size); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
