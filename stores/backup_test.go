package stores_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"witan/kernel"
	"witan/stores"
)

// backedUp makes a directory and a backup of it while it is open.
func backedUp(t *testing.T, encryption bool) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, stores.Options{Dir: dir, Encryption: encryption})
	fill(t, s)
	file = filepath.Join(t.TempDir(), "history.backup")
	n, size, err := s.Backup(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Size() != size || n < 4 {
		t.Fatalf("%d entries, %d bytes: %v", n, size, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

func TestBackup(t *testing.T) {
	ctx := context.Background()
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			_, file := backedUp(t, encryption)
			if b, err := os.ReadFile(file); err != nil || encryption && containsSecret(b) {
				t.Fatalf("the backup holds content in the clear (%v)", err)
			}
			dir := filepath.Join(t.TempDir(), "deep", "restored")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			config := filepath.Join(dir, "config.toml") // may be there already
			if err := os.WriteFile(config, []byte("x = 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := stores.Restore(ctx, file, dir); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(config); err != nil || string(b) != "x = 1\n" {
				t.Fatalf("config.toml is %q, %v", b, err)
			}
			damaged, _, err := stores.Check(ctx, dir, func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
			if err != nil || damaged > 0 {
				t.Fatalf("a restored directory has %d damages: %v", damaged, err)
			}
			s := open(t, stores.Options{Dir: dir})
			defer s.Close()
			wantAll(t, s)
		})
	}
}

func TestRestoreRefused(t *testing.T) {
	ctx := context.Background()
	keyed(t)
	dir, file := backedUp(t, true)
	before := sums(t, dir)
	wantKind(t, stores.Restore(ctx, file, dir), kernel.Invalid)
	if !maps.Equal(before, sums(t, dir)) {
		t.Fatal("a refused restore changed the directory")
	}
	parent := t.TempDir()
	wantKind(t, stores.Restore(ctx, filepath.Join(parent, "none"), filepath.Join(parent, "x")), kernel.Invalid)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	bad := filepath.Join(t.TempDir(), "bad")
	for i := range 40 {
		damaged := append([]byte{}, b...)
		at := random.IntN(len(b))
		if i%4 == 0 {
			damaged = damaged[:at] // cut
		} else {
			damaged[at] ^= byte(1 + random.IntN(255))
		}
		if err := os.WriteFile(bad, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := stores.Restore(ctx, bad, filepath.Join(parent, "restored")); !kernel.IsKind(err, kernel.Corrupt) {
			t.Errorf("damage %d at byte %d of %d: %v", i, at, len(b), err)
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Fatalf("a refused restore left %v, %v", left, err)
		}
	}
}
