package packs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dgraph-io/badger/v4"

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

// Every single byte of pack files and caches counts.
func TestEveryFlipIsNamed(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		s.bulk(t, []byte("first"), random(1, 60), bytes.Repeat([]byte("text "), 100), nil)
		if err := s.SaveStat(ctx, "/w", random(2, 40)); err != nil {
			t.Fatal(err)
		}
		if bad := check(t, s); len(bad) > 0 {
			t.Fatalf("an untouched store is damaged: %v", bad)
		}
		for _, path := range append(s.files(t, "packs/*.pack"), s.files(t, "stat/*.stat")...) {
			whole := read(t, path)
			rel, err := filepath.Rel(s.dir, path)
			if err != nil {
				t.Fatal(err)
			}
			named := func(what string, at int) {
				bad := check(t, s)
				if len(bad) == 0 {
					t.Fatalf("%s: %s at %d of %d is not noticed", rel, what, at, len(whole))
				}
				for _, d := range bad {
					if d.File != filepath.ToSlash(rel) || d.ID == "" || d.Reason == "" {
						t.Fatalf("%s: %s at %d is named %+v", rel, what, at, d)
					}
				}
			}
			for i := range whole {
				whole[i] ^= 1 << (i % 8)
				rewrite(t, path, whole)
				named("a flip", i)
				whole[i] ^= 1 << (i % 8)
			}
			for _, n := range []int{0, 1, 40, len(whole) / 2, len(whole) - 1} {
				rewrite(t, path, whole[:n])
				named("a cut", n)
			}
			rewrite(t, path, append(bytes.Clone(whole), 0))
			named("a byte behind", len(whole))
			rewrite(t, path, whole)
		}
		if bad := check(t, s); len(bad) > 0 {
			t.Fatalf("damage remains: %v", bad)
		}
	})
}

// One damaged pack is named by itself, and its neighbours stay readable.
func TestDamageOfOnePack(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		a, b, c := random(1, 5000), random(2, 3<<20), random(3, 5000)
		s.bulk(t, a, b, c)
		path := s.files(t, "packs/*.pack")[0]
		raw := read(t, path)
		raw[2<<20] ^= 4
		rewrite(t, path, raw)
		bad := check(t, s)
		if len(bad) != 1 || bad[0].Kind != "pack" || bad[0].ID != kernel.Sum(b).String() {
			t.Fatalf("damage: %+v", bad)
		}
		if err := s.SaveStat(ctx, "/w", []byte("says that all is stored")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.Get(ctx, kernel.Sum(b)); !kernel.IsKind(err, kernel.Corrupt) {
				t.Fatalf("get of a damaged pack: %v", err)
			}
		}
		s.want(t, a, c)
		// Its bytes are kept, what a cache says of the store is void, and the same content heals it.
		if kept := s.files(t, "quarantine/*"); len(kept) != 1 || len(read(t, kept[0])) < len(b) {
			t.Fatalf("quarantine holds %v", kept)
		}
		if _, err := s.LoadStat(ctx, "/w"); !kernel.IsKind(err, kernel.NotFound) {
			t.Fatalf("the cache is still there: %v", err)
		}
		s.bulk(t, b)
		s.want(t, a, b, c)
	})
}

func TestDamageOfASmallPack(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		content := []byte("a small pack")
		d, err := s.Put(ctx, "text", content)
		if err != nil {
			t.Fatal(err)
		}
		err = s.db.Update(func(txn *badger.Txn) error {
			k := append([]byte("p/"), d[:]...)
			it, err := txn.Get(k)
			if err != nil {
				return err
			}
			v, err := it.ValueCopy(nil)
			if err != nil {
				return err
			}
			v[len(v)-1] ^= 1
			return txn.Set(k, v)
		})
		if err != nil {
			t.Fatal(err)
		}
		bad, _, err := s.Check(ctx)
		if err != nil || len(bad) != 1 || bad[0].ID != d.String() || bad[0].Kind != "pack" {
			t.Fatalf("damage: %+v, %v", bad, err)
		}
		if _, err := s.Get(ctx, d); !kernel.IsKind(err, kernel.Corrupt) {
			t.Fatalf("get: %v", err)
		}
		if _, err := s.Put(ctx, "text", content); err != nil {
			t.Fatal(err)
		}
		s.want(t, content)
	})
}

// A file that cannot be read is not a damaged one: nothing is set aside.
func TestReadErrorIsNotDamage(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		content := random(1, 200_000)
		s.bulk(t, content)
		path := s.files(t, "packs/*.pack")[0]
		raw := read(t, path)
		if err := errors.Join(os.Remove(path), os.Symlink(path, path)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, kernel.Sum(content)); err == nil || kernel.IsKind(err, kernel.Corrupt) {
			t.Fatalf("get: %v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		rewrite(t, path, raw)
		s.want(t, content)
	})
}

func TestLostFile(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		s.bulk(t, []byte("a"), []byte("b"))
		path := s.files(t, "packs/*.pack")[0]
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		bad, _, err := s.Check(ctx)
		if err != nil || len(bad) != 1 || bad[0].File != "packs/"+filepath.Base(path) {
			t.Fatalf("damage: %+v, %v", bad, err)
		}
		if _, err := s.Get(ctx, kernel.Sum([]byte("a"))); !kernel.IsKind(err, kernel.Corrupt) {
			t.Fatalf("get: %v", err)
		}
	})
}

// Open removes what was never finished and indexes what nobody indexed.
func TestOpenTidies(t *testing.T) {
	for mode, encryption := range map[string]bool{"plain": false, "encrypted": true} {
		t.Run(mode, func(t *testing.T) {
			t.Setenv(db.KeyFileEnv, filepath.Join(t.TempDir(), "key"))
			dir := filepath.Join(t.TempDir(), "home")
			s := open(t, dir, encryption)
			a, b := random(1, 300_000), random(2, 100)
			s.bulk(t, a, b)
			path := s.files(t, "packs/*.pack")[0]
			id := strings.TrimSuffix(filepath.Base(path), ".pack")
			// As if it had been killed between rename and index.
			err := s.db.Update(func(txn *badger.Txn) error {
				for _, k := range [][]byte{[]byte("f/" + id), append([]byte("i/"), digest(a)...), append([]byte("i/"), digest(b)...)} {
					if err := txn.Delete(k); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, filepath.Join(dir, "packs", "half.pack.tmp"), []byte("WITANPK1"))
			rewrite(t, filepath.Join(dir, "stat", "half.pack.tmp"), nil)
			if bad := check(t, s); len(bad) > 0 {
				t.Fatalf("unfinished writes are damage: %v", bad)
			}
			s.close(t)
			s = open(t, dir, encryption)
			defer s.close(t)
			s.want(t, a, b)
			if left := append(s.files(t, "packs/*.tmp"), s.files(t, "stat/*.tmp")...); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
		})
	}
}

func digest(b []byte) []byte { d := kernel.Sum(b); return d[:] }

// A damaged file that is not indexed stays where it is, and the rest works.
func TestOpenLeavesDamageAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	s := open(t, dir, false)
	a := random(1, 300_000)
	s.bulk(t, a)
	s.close(t)
	broken := filepath.Join(dir, "packs", strings.Repeat("ab", 12)+".pack")
	rewrite(t, broken, []byte("WITANPK1 and then nothing of use"))
	s = open(t, dir, false)
	defer s.close(t)
	s.want(t, a)
	if bad := check(t, s); len(bad) != 1 || bad[0].File != "packs/"+filepath.Base(broken) {
		t.Fatalf("damage: %+v", bad)
	}
}

func TestReindexFromFilesAlone(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		var all [][]byte
		for i := range 30 { // more than one file
			all = append(all, random(uint64(i), 1<<20-i))
		}
		all = append(all, random(99, 5<<20))
		s.bulk(t, all...)
		if n := len(s.files(t, "packs/*.pack")); n < 2 {
			t.Fatalf("%d files", n)
		}
		n, err := s.Reindex(ctx)
		if err != nil || n != len(all) {
			t.Fatalf("%d packs, %v", n, err)
		}
		s.want(t, all...)
		for _, b := range all {
			info, err := s.Stat(ctx, kernel.Sum(b))
			if err != nil || info.Kind != "blob" || info.Bytes != int64(len(b)) || info.Stored < info.Bytes/2 {
				t.Fatalf("%+v, %v", info, err)
			}
		}
		path := s.files(t, "packs/*.pack")[0]
		rewrite(t, path, read(t, path)[:1000])
		if _, err := s.Reindex(ctx); !kernel.IsKind(err, kernel.Corrupt) || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Fatalf("reindex with a damaged file: %v", err)
		}
	})
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
