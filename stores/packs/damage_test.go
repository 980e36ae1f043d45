package packs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/stores/db"
)

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
