package stores_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

func wantKind(t *testing.T, err error, k kernel.Kind) {
	t.Helper()
	if !kernel.IsKind(err, k) {
		t.Fatalf("error is %v, want kind %q", err, k)
	}
}

// refused opens a closed directory that must be refused with no byte changed
// and a next step named.
func refused(t *testing.T, dir string, k kernel.Kind) {
	t.Helper()
	before := sums(t, dir)
	s, err := stores.Open(context.Background(), stores.Options{Dir: dir, Encryption: true})
	if err == nil {
		s.Close()
	}
	wantKind(t, err, k)
	if ke, ok := err.(*kernel.Error); !ok || ke.Next == "" {
		t.Fatalf("no next step in %v", err)
	}
	if !maps.Equal(before, sums(t, dir)) {
		t.Fatal("a refused open changed the directory")
	}
}

// filled is a closed directory with something of every kind in it.
func filled(t testing.TB, encryption bool) string {
	t.Helper()
	dir := t.TempDir()
	s := open(t, stores.Options{Dir: dir, Encryption: encryption})
	fill(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readAll reads everything that fill stored and fails at the first error.
func readAll(t testing.TB, s *stores.Store) (records, packs, messages int) {
	t.Helper()
	ctx := context.Background()
	for sum, err := range s.Ledger.Summaries(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.Ledger.Read(ctx, sum.Run, 1) {
			if err != nil {
				t.Fatal(err)
			}
			records++
		}
	}
	for p, err := range s.Packs.List(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Packs.Get(ctx, p.Hash); err != nil {
			t.Fatal(err)
		}
		packs++
	}
	for _, err := range s.Conversations.Messages(ctx, kerneltest.Conv(1).ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		messages++
	}
	return records, packs, messages
}

func wantAll(t testing.TB, s *stores.Store) {
	t.Helper()
	if r, p, m := readAll(t, s); r != 30 || p != 6 || m != 3 {
		t.Fatalf("%d records, %d packs, %d messages; want 30, 6, 3", r, p, m)
	}
	es, st, err := s.Conversations.Entries(context.Background(), kerneltest.Conv(1).ID)
	if err != nil || len(es) != 1 || es[0].Text != secret || !st.Paused {
		t.Errorf("the queue is %+v %+v, %v", es, st, err)
	}
}

func TestReopen(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			dir := filled(t, encryption)
			for range 3 {
				s := open(t, stores.Options{Dir: dir, Encryption: !encryption}) // FORMAT decides
				wantAll(t, s)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("files have no permission bits here; the folder of the user protects them")
		return
	}
	keyed(t)
	dir := filled(t, true)
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, fi.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecondHost(t *testing.T) {
	keyed(t)
	dir := filled(t, true)
	s := open(t, stores.Options{Dir: dir})
	_, err := stores.Open(context.Background(), stores.Options{Dir: dir})
	wantKind(t, err, kernel.Locked)
	if !strings.Contains(err.Error(), "process ") {
		t.Fatalf("the owner is not named: %v", err)
	}
	wantAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, stores.Options{Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoSpace: a write that would fill the disk is refused before anything is
// written; reading goes on, and writing too once there is room.
func TestNoSpace(t *testing.T) {
	keyed(t)
	ctx := context.Background()
	dir := filled(t, true)
	room := int64(1 << 40)
	s := open(t, stores.Options{Dir: dir, Free: func(string) (int64, error) { return room, nil }})
	head, err := s.Ledger.Head(ctx, kerneltest.Run(1))
	if err != nil {
		t.Fatal(err)
	}
	room = 1 << 20
	before := sums(t, dir)
	for what, write := range map[string]func() error{
		"append": func() error {
			_, _, err := s.Ledger.Append(ctx, kerneltest.Batch(kerneltest.Run(1), head, 1, "a"))
			return err
		},
		"put":          func() error { _, err := s.Packs.Put(ctx, "text", []byte("new")); return err },
		"put large":    func() error { _, err := s.Packs.Put(ctx, "text", kerneltest.Random(77, 300_000)); return err },
		"begin":        func() error { _, err := s.Packs.Begin(ctx); return err },
		"stat":         func() error { return s.Packs.SaveStat(ctx, "/w", []byte("x")) },
		"conversation": func() error { return s.Conversations.PutConversation(ctx, kerneltest.Conv(2)) },
		"stream":       func() error { return s.Conversations.AppendStream(ctx, "atp_9", []byte("x")) },
	} {
		if err := write(); !kernel.IsKind(err, kernel.NoSpace) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !maps.Equal(before, sums(t, dir)) {
		t.Fatal("a refused write changed a file")
	}
	wantAll(t, s)
	room = 1 << 40
	if _, _, err := s.Ledger.Append(ctx, kerneltest.Batch(kerneltest.Run(1), head, 1, "a")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = stores.Open(ctx, stores.Options{Dir: dir, Free: func(string) (int64, error) { return 1 << 20, nil }})
	wantKind(t, err, kernel.NoSpace)
}

func TestNewerSchema(t *testing.T) {
	keyed(t)
	dir := filled(t, true)
	path := filepath.Join(dir, "FORMAT")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	f["schema"], f["later"] = 2, "unknown field"
	if b, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, kernel.Newer)
	_, _, err = stores.Check(context.Background(), dir, func(stores.CheckRow) error { return nil })
	wantKind(t, err, kernel.Newer)
}

func TestFormatGone(t *testing.T) {
	keyed(t)
	dir := filled(t, true)
	if err := os.Remove(filepath.Join(dir, "FORMAT")); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, kernel.Corrupt)
}

func TestKeyMissing(t *testing.T) {
	keyed(t)
	dir := filled(t, true)
	key := os.Getenv("WITAN_KEY_FILE")
	old, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, kernel.ReadOnly)
	if _, err := os.Stat(key); err == nil {
		t.Fatal("a key was made up")
	}
	if _, _, err := stores.Check(context.Background(), dir, func(stores.CheckRow) error { return nil }); err == nil {
		t.Fatal("a check without the key is no error")
	}
	wrong := slices.Clone(old)
	wrong[0] = "01"[(wrong[0]-'0'+1)%2]
	if err := os.WriteFile(key, wrong, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, kernel.ReadOnly)
	if err := os.WriteFile(key, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, stores.Options{Dir: dir})
	defer s.Close()
	wantAll(t, s)
}

// TestTableEnd: Badger ends the process over the damaged end of a table, so it
// must not get to see one, whether the database was closed or not.
func TestTableEnd(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			live := filled(t, encryption)
			s := open(t, stores.Options{Dir: live})
			dirs := []string{copyTree(t, live)}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			unlisted := copyTree(t, dirs[0]) // killed before the list was written
			if err := os.Remove(filepath.Join(unlisted, "OPEN")); err != nil {
				t.Fatal(err)
			}
			for i, dir := range append(dirs, live, unlisted) {
				for back := range int64(40) {
					if dir == unlisted && back >= 14 { // its index has a checksum, its blocks are not read
						break
					}
					tableEnd(t, dir, back+1, i)
				}
			}
		})
	}
}

func tableEnd(t *testing.T, dir string, back int64, state int) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no table: %v", err)
	}
	b, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	bad := slices.Clone(b)
	bad[int64(len(b))-back] ^= 0x80
	if err := os.WriteFile(tables[0], bad, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := stores.Open(context.Background(), stores.Options{Dir: dir})
	if err == nil {
		s.Close()
		t.Fatalf("state %d: a table damaged %d bytes before its end opens", state, back)
	}
	wantKind(t, err, kernel.Corrupt)
	if err := os.WriteFile(tables[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
}
