package stores_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// secret is a word that occurs in every kind of content and so must occur in
// no file of an encrypted history.
const secret = "rutabaga"

func containsSecret(b []byte) bool { return bytes.Contains(b, []byte(secret)) }

// fill stores something of every kind.
func fill(t testing.TB, s *stores.Store) {
	t.Helper()
	ctx := context.Background()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conv := kerneltest.Conv(1)
	conv.Title, conv.Workspace = secret, "/"+secret
	check(s.Conversations.PutConversation(ctx, conv))
	w, err := s.Packs.Begin(ctx)
	check(err)
	for n := range 3 {
		run := kerneltest.Run(n)
		var head kernel.Head
		for range 5 {
			b := kerneltest.Batch(run, head, 2, secret+strings.Repeat(" word", 50))
			b.Summary.Title, b.Key = secret, secret+string(run)
			head, _, err = s.Ledger.Append(ctx, b)
			check(err)
		}
		check(s.Ledger.Witness(ctx))
		text, err := s.Packs.Put(ctx, "text", fmt.Append(nil, secret, n))
		check(err)
		_, err = w.Add("blob", append([]byte(secret), kerneltest.Random(uint64(n), 100_000)...))
		check(err)
		check(s.Conversations.PutMessage(ctx, kernel.Message{ID: kernel.MessageID(fmt.Sprint("msg_", n)), Conversation: conv.ID, Run: run,
			TurnSeq: uint64(n), Text: text, Attachments: []kernel.Attachment{{Name: secret}}}))
		check(s.Conversations.AppendStream(ctx, kernel.AttemptID(fmt.Sprint("atp_", n)), []byte(secret)))
	}
	check(w.Seal())
	waiting := kerneltest.Entry(1, 1)
	waiting.Text = secret
	_, _, err = s.Conversations.AddEntry(ctx, waiting)
	check(err)
	check(s.Conversations.PauseQueue(ctx, conv.ID, "run_failed", secret))
	check(s.Packs.SaveStat(ctx, "/"+secret, bytes.Repeat([]byte(secret), 100)))
}

// copyTree copies a data directory; the source may be in use.
func copyTree(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// dataFiles are the files of a data directory whose every byte matters.
func dataFiles(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if n := e.Name(); n != "LOCK" && n != "config.toml" {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// images are copies of a data directory in every state worth checking.
func images(t *testing.T, encryption bool) map[string]string {
	keyed(t)
	dir := t.TempDir()
	s := open(t, stores.Options{Dir: dir, Encryption: encryption})
	fill(t, s)
	out := map[string]string{"live": copyTree(t, dir)}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out["closed"] = copyTree(t, dir)
	s = open(t, stores.Options{Dir: dir}) // tables from before, logs from now
	if _, err := s.Packs.Put(context.Background(), "text", []byte(secret+" later")); err != nil {
		t.Fatal(err)
	}
	out["live again"] = copyTree(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheck(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			for state, dir := range images(t, encryption) {
				t.Run(state, func(t *testing.T) { checkImage(t, dir, encryption) })
			}
		})
	}
}

func checkImage(t *testing.T, dir string, encryption bool) {
	before := sums(t, dir)
	damaged, checked, err := stores.Check(context.Background(), dir, func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
	if err != nil || damaged > 0 || checked < 30 {
		t.Fatalf("an untouched directory has %d damages of %d: %v", damaged, checked, err)
	}
	if after := sums(t, dir); !maps.Equal(before, after) {
		t.Fatal("a check changed the directory")
	}
	for _, file := range dataFiles(t, dir) {
		if encryption {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || containsSecret(b) {
				t.Errorf("%s holds content in the clear (%v)", file, err)
			}
		}
		flipAll(t, dir, file, 16, func() (int, error) {
			damaged, _, err := stores.Check(context.Background(), dir, func(stores.CheckRow) error { return nil })
			return damaged, err
		})
	}
}

// TestCheckLive: the host's own check sees a byte that changed below it, and
// none while others write.
func TestCheckLive(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			s := open(t, stores.Options{Dir: filled(t, encryption)})
			defer s.Close()
			ctx := context.Background()
			check := func() (int, error) {
				damaged, _, err := s.CheckLive(ctx, func(stores.CheckRow) error { return nil })
				return damaged, err
			}
			for _, file := range dataFiles(t, s.DB.Dir) {
				flipAll(t, s.DB.Dir, file, 4, check)
			}
			done := make(chan error)
			go func() {
				var err error
				for i := 0; i < 300 && err == nil; i++ {
					_, err = s.Packs.Put(ctx, "text", kerneltest.Random(uint64(i), 5000))
				}
				done <- err
			}()
			for {
				if damaged, err := check(); damaged > 0 || err != nil {
					t.Errorf("%d damages while others write, %v", damaged, err)
				}
				select {
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					return
				default:
				}
			}
		})
	}
}

// positions are n places of a file, the ends among them, and more in its first
// bytes, where headers are.
func positions(size int64, n int) []int64 {
	random := rand.New(rand.NewPCG(7, uint64(size)))
	out := []int64{0, size - 1}
	for len(out) < n*3/4 {
		out = append(out, random.Int64N(size))
	}
	for len(out) < n {
		out = append(out, random.Int64N(min(size, 64)))
	}
	return out
}

// flipAll changes a byte in so many places of a file, one after the other, and wants check to notice.
func flipAll(t *testing.T, dir, file string, places int, check func() (int, error)) {
	t.Helper()
	path := filepath.Join(dir, file)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() == 0 {
		return
	}
	random := rand.New(rand.NewPCG(8, uint64(fi.Size())))
	for _, at := range positions(fi.Size(), places) {
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		bad := [1]byte{b[0] ^ byte(1+random.IntN(255))}
		if _, err := f.WriteAt(bad[:], at); err != nil {
			t.Fatal(err)
		}
		damaged, err := check()
		if damaged == 0 && !kernel.IsKind(err, kernel.Corrupt) {
			t.Errorf("%s: byte %d of %d changed from %02x to %02x: %d damages, %v", file, at, fi.Size(), b[0], bad[0], damaged, err)
		}
		if _, err := f.WriteAt(b[:], at); err != nil {
			t.Fatal(err)
		}
	}
}

// sums gives the digest of every file of a directory.
func sums(t testing.TB, dir string) map[string]kernel.Digest {
	t.Helper()
	out := map[string]kernel.Digest{}
	for _, f := range dataFiles(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		out[f] = kernel.Sum(b)
	}
	return out
}
