package packs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/iotest"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores/db"
	"witan/stores/packs"
)

var ctx = context.Background()

// store is a data directory with its packs.
type store struct {
	*packs.Store
	db  *db.DB
	key []byte
	dir string
}

func open(t *testing.T, dir string, encryption bool) store {
	t.Helper()
	d, err := db.Open(ctx, db.Options{Dir: dir, Encryption: encryption})
	if err != nil {
		t.Fatal(err)
	}
	s, err := packs.Open(packs.Options{DB: d, Key: d.PackKey()})
	if err != nil {
		t.Fatal(err)
	}
	return store{s, d, d.PackKey(), dir}
}

func (s store) close(t *testing.T) {
	t.Helper()
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
}

// each runs a test on an encrypted store and on a plain one.
func each(t *testing.T, test func(t *testing.T, s store)) {
	for mode, encryption := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv(db.KeyFileEnv, filepath.Join(t.TempDir(), "key"))
			s := open(t, filepath.Join(t.TempDir(), "home"), encryption)
			defer s.close(t)
			test(t, s)
		})
	}
}

// bulk writes packs with one writer and returns their names.
func (s store) bulk(t *testing.T, contents ...[]byte) []kernel.Digest {
	t.Helper()
	w, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	var out []kernel.Digest
	for _, b := range contents {
		d, err := w.Add("blob", b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	return out
}

func (s store) files(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (s store) want(t *testing.T, contents ...[]byte) {
	t.Helper()
	for _, b := range contents {
		got, err := s.Get(ctx, kernel.Sum(b))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("pack of %d bytes: %d bytes, %v", len(b), len(got), err)
		}
	}
}

func check(t *testing.T, s store) []db.Damage {
	t.Helper()
	bad, n, err := packs.CheckFiles(s.dir, s.key)
	if err != nil || n == 0 {
		t.Fatalf("check looked at %d things: %v", n, err)
	}
	return bad
}

func random(seed uint64, n int) []byte { return kerneltest.Random(seed, n) }

func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What turns out to be known, or cannot be read to its end, takes no room.
func TestLargeDuplicatesTakeNoRoom(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		large, small := random(1, 3<<20), random(2, 1000)
		s.bulk(t, large)
		w, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		if _, err := w.Add("blob", small); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		for _, r := range []io.Reader{bytes.NewReader(large), io.MultiReader(bytes.NewReader(random(3, 3<<20)), iotest.ErrReader(broken)), bytes.NewReader(large)} {
			if _, _, err := w.AddReader("blob", r, -1); err != nil && !errors.Is(err, broken) {
				t.Fatal(err)
			}
		}
		if _, err := w.Add("blob", random(4, 2000)); err != nil {
			t.Fatal(err)
		}
		if err := w.Seal(); err != nil {
			t.Fatal(err)
		}
		s.want(t, large, small, random(4, 2000))
		if bad := check(t, s); len(bad) > 0 {
			t.Fatalf("damage: %v", bad)
		}
		for _, f := range s.files(t, "packs/*.pack") {
			if n := len(read(t, f)); n > 5000 && n < 3<<20 || n > 4<<20 {
				t.Errorf("%s has %d bytes", filepath.Base(f), n)
			}
		}
	})
}

// A file has a bounded number of packs; a cache may be longer than a segment, and compress well.
func TestManyPacks(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		w, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		const n = 20_000 // more than one file has
		for i := range n {
			if _, err := w.Add("blob", strconv.AppendInt(nil, int64(i), 10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Seal(); err != nil {
			t.Fatal(err)
		}
		s.want(t, []byte("0"), []byte("19999"))
		if bad := check(t, s); len(bad) > 0 {
			t.Fatalf("damage: %v", bad)
		}
		cache := bytes.Repeat([]byte("a line of a cache "), 500_000)
		if err := s.SaveStat(ctx, "/w", cache); err != nil {
			t.Fatal(err)
		}
		if got, err := s.LoadStat(ctx, "/w"); err != nil || !bytes.Equal(got, cache) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	})
}

func TestCopyTo(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		large := random(1, 5<<20)
		s.bulk(t, large, []byte("small"))
		for _, b := range [][]byte{large, []byte("small")} {
			var out bytes.Buffer
			if n, err := s.CopyTo(ctx, kernel.Sum(b), &out); err != nil || n != int64(len(b)) || !bytes.Equal(out.Bytes(), b) {
				t.Fatalf("%d of %d bytes, %v", n, len(b), err)
			}
		}
		full := errors.New("full")
		if _, err := s.CopyTo(ctx, kernel.Sum(large), failing{full}); !errors.Is(err, full) || kernel.IsKind(err, kernel.Corrupt) {
			t.Fatalf("a writer that fails: %v", err)
		}
		s.want(t, large)
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestEncryptedFilesHoldNoContent(t *testing.T) {
	t.Setenv(db.KeyFileEnv, filepath.Join(t.TempDir(), "key"))
	s := open(t, filepath.Join(t.TempDir(), "home"), true)
	word := []byte("incomprehensibilities")
	big := append(random(1, 200_000), word...)
	s.bulk(t, word, big)
	if err := s.SaveStat(ctx, string(word), big); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, "text", append([]byte("small: "), word...)); err != nil {
		t.Fatal(err)
	}
	s.close(t)
	err := filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && bytes.Contains(read(t, path), word) {
			t.Errorf("%s holds the word", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The guard says no before anything is written, also in the middle of a large file.
func TestFullDisk(t *testing.T) {
	free := int64(1 << 40)
	d, err := db.Open(ctx, db.Options{Dir: filepath.Join(t.TempDir(), "home"), Free: func(string) (int64, error) { return free, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := packs.Open(packs.Options{DB: d})
	if err != nil {
		t.Fatal(err)
	}
	kept := random(1, 1000)
	if _, err := s.Put(ctx, "text", kept); err != nil {
		t.Fatal(err)
	}
	w, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fill := func() io.Reader { free = 1 << 20; return bytes.NewReader(random(2, 40<<20)) }
	if _, _, err := w.AddReader("blob", &lazy{make: fill}, -1); !kernel.IsKind(err, kernel.NoSpace) {
		t.Fatalf("a reader that fills the disk: %v", err)
	}
	w.Abort()
	if _, err := s.Put(ctx, "text", random(3, 1000)); !kernel.IsKind(err, kernel.NoSpace) {
		t.Fatalf("put: %v", err)
	}
	if _, err := s.Begin(ctx); !kernel.IsKind(err, kernel.NoSpace) {
		t.Fatalf("begin: %v", err)
	}
	if err := s.SaveStat(ctx, "/w", nil); !kernel.IsKind(err, kernel.NoSpace) {
		t.Fatalf("save: %v", err)
	}
	if b, err := s.Get(ctx, kernel.Sum(kept)); err != nil || !bytes.Equal(b, kept) {
		t.Fatalf("what was stored: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(d.Dir, "packs", "*")); err != nil || len(left) > 0 {
		t.Fatalf("left: %v, %v", left, err)
	}
}

// lazy makes its reader when it is read past the first segment.
type lazy struct {
	make func() io.Reader
	n    int
	r    io.Reader
}

func (l *lazy) Read(b []byte) (int, error) {
	if l.n < 2<<20 {
		l.n += len(b)
		return len(b), nil
	}
	if l.r == nil {
		l.r = l.make()
	}
	return l.r.Read(b)
}
