package stores

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"witan/kernel"
	"witan/stores/db"
)

// A backup is one zstd-compressed tar: FORMAT, witness, pack files as they are
// stored (encrypted, if they are), the database as a dump of one moment, sealed
// where it is encrypted, and a manifest of SHA-256 sums as the last entry. The key is not in it: a
// backup of an encrypted history needs the same key to be read.

const (
	backupManifest = "manifest.json"
	backupStream   = "db.stream"
)

type manifest struct {
	Schema int               `json:"schema"`
	Files  map[string]string `json:"files"` // name to SHA-256
}

// Backup writes everything stored to file, replacing it only when complete. The
// database may be in use; what is committed when it starts is in it.
func (s *Store) Backup(ctx context.Context, file string) (entries int, bytes int64, err error) {
	const op = "stores.Backup"
	tmp := file + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, 0, kernel.E(op, kernel.Invalid, err, "%s cannot be written", file).WithNext("name another file")
	}
	defer os.Remove(tmp)
	entries, err = s.writeBackup(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if fi, serr := f.Stat(); serr == nil {
		bytes = fi.Size()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, file)
	}
	if err != nil {
		return 0, 0, db.DiskError(op, filepath.Dir(file), err)
	}
	return entries, bytes, db.SyncDir(filepath.Dir(file))
}

func (s *Store) writeBackup(ctx context.Context, w io.Writer) (int, error) {
	zw, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	b := &backupWriter{t: tar.NewWriter(zw), m: manifest{Schema: db.Schema, Files: map[string]string{}}}
	// The order matters while others write. The witness goes before the database,
	// because it must not know more than that. Pack files go last: what the index
	// names is then in files that exist, for a file is complete before it is indexed.
	for _, name := range []string{"FORMAT", "witness"} {
		if err := b.file(s.DB.Dir, name); err != nil {
			return 0, err
		}
	}
	if err := b.stream(ctx, s); err != nil {
		return 0, err
	}
	packs, err := filepath.Glob(filepath.Join(s.DB.Dir, "packs", "*.pack"))
	if err != nil {
		return 0, err
	}
	for _, p := range packs {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		err := b.file(s.DB.Dir, "packs/"+filepath.Base(p))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // gone when a bulk write was aborted
			return 0, err
		}
	}
	n := len(b.m.Files)
	mb, err := json.Marshal(b.m)
	if err != nil {
		return 0, err
	}
	if err := b.add(backupManifest, int64(len(mb)), bytes.NewReader(mb)); err != nil {
		return 0, err
	}
	return n, errors.Join(b.t.Close(), zw.Close())
}

type backupWriter struct {
	t *tar.Writer
	m manifest
}

func (b *backupWriter) add(name string, size int64, r io.Reader) error {
	if err := b.t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size}); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(b.t, h), r, size); err != nil {
		return err
	}
	b.m.Files[name] = hex.EncodeToString(h.Sum(nil))
	return nil
}

func (b *backupWriter) file(dir, name string) error {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return b.add(name, fi.Size(), f)
}

// stream adds the dump of the database, which is in the clear and so is sealed
// for an encrypted history before it passes through a file.
func (b *backupWriter) stream(ctx context.Context, s *Store) error {
	tmp, err := os.CreateTemp(filepath.Join(s.DB.Dir, "snapshots"), ".tmp-stream-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	sw := db.NewSealWriter(tmp, s.DB.StreamKey())
	if err := s.DB.Dump(ctx, sw); err != nil {
		return err
	}
	if err := sw.Close(); err != nil {
		return err
	}
	size, err := tmp.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return b.add(backupStream, size, tmp)
}

// Restore makes dir from a backup. dir must be empty or absent; it appears
// complete or not at all.
func Restore(ctx context.Context, file, dir string) error {
	const op = "stores.Restore"
	if names, err := os.ReadDir(dir); err == nil {
		for _, n := range names {
			if n.Name() != "config.toml" {
				return kernel.E(op, kernel.Invalid, nil, "%s is not empty", dir).WithNext("restore into a new folder with --home")
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return db.DiskError(op, dir, err)
	}
	f, err := os.Open(file)
	if err != nil {
		return kernel.E(op, kernel.Invalid, err, "the backup %s cannot be read", file).WithNext("name another file")
	}
	defer f.Close()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return db.DiskError(op, dir, err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".tmp-restore-")
	if err != nil {
		return db.DiskError(op, dir, err)
	}
	defer os.RemoveAll(tmp)
	if err := unpack(ctx, f, tmp); err != nil {
		return err
	}
	if err := rebuild(ctx, tmp); err != nil {
		return err
	}
	for _, sub := range []string{"packs", ""} {
		if err := db.SyncDir(filepath.Join(tmp, sub)); err != nil {
			return db.DiskError(op, dir, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "config.toml")); err == nil {
		if err := os.WriteFile(filepath.Join(tmp, "config.toml"), b, 0o600); err != nil {
			return db.DiskError(op, dir, err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return db.DiskError(op, dir, err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return db.DiskError(op, dir, err)
	}
	return db.SyncDir(filepath.Dir(dir))
}

func damagedBackup(why string, args ...any) error {
	return kernel.E("stores.Restore", kernel.Corrupt, nil, "the backup is damaged: "+fmt.Sprintf(why, args...)).WithNext("use another backup; nothing was changed")
}

// unpack writes the files of a backup below dir and compares their sums.
func unpack(ctx context.Context, r io.Reader, dir string) error {
	zr, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return damagedBackup("%v", err)
	}
	defer zr.Close()
	t := tar.NewReader(zr)
	got := map[string]string{}
	var m manifest
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damagedBackup("%v", err)
		}
		if !filepath.IsLocal(h.Name) || strings.Contains(h.Name, `\`) || h.Typeflag != tar.TypeReg {
			return damagedBackup("entry %q", h.Name)
		}
		if h.Name == backupManifest {
			b, err := io.ReadAll(io.LimitReader(t, 64<<20))
			if err != nil || json.Unmarshal(b, &m) != nil {
				return damagedBackup("no manifest")
			}
			continue
		}
		sum, err := writeOut(filepath.Join(dir, filepath.FromSlash(h.Name)), t)
		if err != nil {
			return err
		}
		got[h.Name] = sum
	}
	if m.Schema > db.Schema {
		return kernel.E("stores.Restore", kernel.Newer, nil, "the backup has schema %d", m.Schema).WithNext("use a newer witan")
	}
	if m.Files == nil || len(m.Files) != len(got) {
		return damagedBackup("it is not complete")
	}
	for name, sum := range m.Files {
		if got[name] != sum {
			return damagedBackup("%s does not match its hash", name)
		}
	}
	return nil
}

func writeOut(path string, r io.Reader) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", db.DiskError("stores.Restore", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", db.DiskError("stores.Restore", path, err)
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), r)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		if errors.Is(err, zstd.ErrCRCMismatch) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, zstd.ErrMagicMismatch) {
			return "", damagedBackup("%v", err)
		}
		return "", db.DiskError("stores.Restore", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// rebuild loads the stream into a new database in dir.
func rebuild(ctx context.Context, dir string) error {
	src := filepath.Join(dir, backupStream)
	d, err := db.OpenEmpty(ctx, dir)
	if err != nil {
		return err
	}
	f, err := os.Open(src)
	if err != nil {
		return errors.Join(damagedBackup("no database"), d.Close())
	}
	r, err := db.NewSealReader(f, d.StreamKey())
	if err == nil {
		err = d.Fill(ctx, r)
	}
	f.Close()
	switch {
	case errors.Is(err, db.ErrStream):
		err = damagedBackup("%v", err)
	case err != nil:
		err = db.DiskError("stores.Restore", dir, err)
	default:
		err = os.Remove(src)
	}
	return errors.Join(err, d.Close())
}
