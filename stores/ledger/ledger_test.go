package ledger_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores/db"
	"witan/stores/ledger"
)

// opened is a ledger with the database below it.
type opened struct {
	*ledger.Ledger
	db *db.DB
}

func open(t *testing.T, dir string) opened {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return opened{l, d}
}

func (o opened) close(t *testing.T) {
	t.Helper()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.db.Close(); err != nil {
		t.Fatal(err)
	}
}

// add appends n records to a run, one by one.
func (o opened) add(t *testing.T, run kernel.RunID, n int) kernel.Head {
	t.Helper()
	head, err := o.Head(t.Context(), run)
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		t.Fatal(err)
	}
	for range n {
		if head, _, err = o.Append(t.Context(), kerneltest.Batch(run, head, 1, "text")); err != nil {
			t.Fatal(err)
		}
	}
	return head
}

// read gives the number of records before the first error.
func (o opened) read(t *testing.T, run kernel.RunID) (n int, err error) {
	t.Helper()
	for _, err := range o.Read(t.Context(), run, 1) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// wantDamage wants a Corrupt error that names the run and what is written, a
// next step, the same from Check, and all other runs whole.
func (o opened) wantDamage(t *testing.T, run kernel.RunID, before int, says string) {
	t.Helper()
	n, err := o.read(t, run)
	ke, _ := err.(*kernel.Error)
	if ke == nil || ke.Kind != kernel.Corrupt || ke.Run != run || ke.Next == "" || !strings.Contains(ke.What, says) || n != before {
		t.Fatalf("%d records, then %v; want %d, then %q", n, err, before, says)
	}
	bad, _, err := o.Check(t.Context())
	if err != nil || len(bad) != 1 || bad[0].Run != run || bad[0].Conversation == "" && n > 0 || !strings.Contains(bad[0].Reason, says) {
		t.Fatalf("check gave %+v, %v", bad, err)
	}
	if n, err := o.read(t, other); n != 3 || err != nil {
		t.Fatalf("the other run: %d records, %v", n, err)
	}
}

var run, other = kerneltest.Run(1), kerneltest.Run(2)

// copyDir copies the plain files of a folder.
func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestShortened: a database that lost its end, or a whole run, is noticed, and
// no second chain grows where the first was lost.
func TestShortened(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir)
	old := filepath.Join(t.TempDir(), "db")
	o.add(t, other, 3)
	copyDir(t, filepath.Join(dir, "db"), old) // as if it was all that reached the disk
	for _, lost := range []struct {
		keep int
		says string
	}{{0, "ends at record 0; its witness knows 4"}, {4, "ends at record 4; its witness knows 7"}} {
		o.add(t, run, 4-o.have(t))
		if lost.keep > 0 {
			copyDir(t, filepath.Join(dir, "db"), old)
			o.add(t, run, 3)
		}
		if err := o.Witness(t.Context()); err != nil {
			t.Fatal(err)
		}
		image := filepath.Join(t.TempDir(), "image")
		copyDir(t, dir, image)
		copyDir(t, old, filepath.Join(image, "db"))
		cut := open(t, image)
		cut.wantDamage(t, run, lost.keep, lost.says)
		head, err := cut.Head(t.Context(), run)
		if err != nil && !kernel.IsKind(err, kernel.NotFound) {
			t.Fatal(err)
		}
		if _, _, err := cut.Append(t.Context(), kerneltest.Batch(run, head, 1, "again")); !kernel.IsKind(err, kernel.Corrupt) {
			t.Fatalf("an append behind a lost end: %v", err)
		}
		cut.add(t, kerneltest.Run(3), 1)
		cut.close(t)
	}
	o.close(t)
}

// have is the number of records of the run.
func (o opened) have(t *testing.T) int {
	h, err := o.Head(t.Context(), run)
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		t.Fatal(err)
	}
	return int(h.Seq)
}

func recordKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte("l/"+string(run)+"/"), seq)
}

// TestDamaged: a record that is not what it was is named, what is before it can
// be read, and other runs go on. Badger's own checksums do not help here.
func TestDamaged(t *testing.T) {
	set := func(key, value []byte) func(*badger.Txn) error {
		return func(txn *badger.Txn) error { return txn.Set(key, value) }
	}
	change := func(key []byte, f func([]byte) []byte) func(*badger.Txn) error {
		return func(txn *badger.Txn) error {
			it, err := txn.Get(key)
			if err != nil {
				return err
			}
			b, err := it.ValueCopy(nil)
			if err != nil {
				return err
			}
			return txn.Set(key, f(b))
		}
	}
	for name, c := range map[string]struct {
		damage func(*badger.Txn) error
		before int
		says   string
	}{
		"missing":      {func(txn *badger.Txn) error { return txn.Delete(recordKey(3)) }, 2, "record 3"},
		"empty":        {set(recordKey(3), nil), 2, "record 3"},
		"text changed": {change(recordKey(3), func(b []byte) []byte { return []byte(strings.Replace(string(b), "text", "lies", 1)) }), 3, "record 4"},
		"last changed": {change(recordKey(5), func(b []byte) []byte { return []byte(strings.Replace(string(b), "text", "lies", 1)) }), 4, "record 5"},
		"head changed": {change([]byte("h/"+run), func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), 4, "record 5"},
		"head cut":     {change([]byte("h/"+run), func(b []byte) []byte { return b[1:] }), 5, "head"},
		"row damaged":  {set([]byte("s/"+run), []byte("{")), 5, "row"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, t.TempDir())
			defer o.close(t)
			o.add(t, run, 5)
			o.add(t, other, 3)
			if err := o.db.Update(c.damage); err != nil {
				t.Fatal(err)
			}
			if name == "row damaged" {
				bad, _, err := o.Check(t.Context())
				if err != nil || len(bad) != 1 || bad[0].ID != string(run) || !strings.Contains(bad[0].Reason, c.says) {
					t.Fatalf("check gave %+v, %v", bad, err)
				}
				if _, err := o.Summary(t.Context(), run); !kernel.IsKind(err, kernel.Corrupt) {
					t.Fatal(err)
				}
				o.wantRows(t)
				return
			}
			o.wantDamage(t, run, c.before, c.says)
		})
	}
}

// wantRows wants the rows of three runs, the middle one's damaged.
func (o opened) wantRows(t *testing.T) {
	t.Helper()
	o.add(t, kerneltest.Run(0), 1)
	var rows []kernel.RunSummary
	for s, err := range o.Summaries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, s)
	}
	if len(rows) != 3 || rows[0].Run != other || rows[1].Run != run || rows[2].Run != kerneltest.Run(0) {
		t.Fatalf("%+v", rows)
	}
	if rows[0].Reason != "" || rows[1].Reason != ledger.ReasonRowDamaged || rows[2].Reason != "" {
		t.Fatalf("%+v", rows)
	}
}

// TestRowGone: a run without its row is listed as damaged, first, between and last.
func TestRowGone(t *testing.T) {
	for n := range 3 {
		o := open(t, t.TempDir())
		for i := range 3 {
			o.add(t, kerneltest.Run(i), 1)
		}
		if err := o.db.Update(func(txn *badger.Txn) error { return txn.Delete([]byte("s/" + kerneltest.Run(n))) }); err != nil {
			t.Fatal(err)
		}
		want := 2
		for s, err := range o.Summaries(t.Context()) {
			if err != nil || s.Run != kerneltest.Run(want) || (s.Reason != "") != (want == n) {
				t.Fatalf("run %d gone: %+v, %v", n, s, err)
			}
			want--
		}
		if want != -1 {
			t.Fatalf("run %d gone: %d rows", n, 2-want)
		}
		o.close(t)
	}
}

// TestWitnessGone: a witness that is gone vouches for nothing, and that is named;
// before the first record there is nothing to vouch for.
func TestWitnessGone(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir)
	defer o.close(t)
	for _, want := range []int{0, 1} {
		if err := os.Remove(filepath.Join(dir, "witness")); err != nil && want == 0 {
			t.Fatal(err)
		}
		bad, _, err := o.Check(t.Context())
		if err != nil || len(bad) != want || want == 1 && bad[0].Kind != "witness" {
			t.Fatalf("%+v, %v, want %d", bad, err, want)
		}
		o.add(t, run, 1)
	}
}

// TestWitnessFile: the witness stays small, an entry that a crash cut off is no
// damage, and a changed one is.
func TestWitnessFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "witness")
	o := open(t, dir)
	o.add(t, other, 3)
	o.add(t, run, 1200)
	o.close(t)
	grown, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open(t, dir).close(t)
	b, err := os.ReadFile(path)
	if err != nil || len(b) >= len(grown)/100 {
		t.Fatalf("the witness has %d bytes after %d, %v", len(b), len(grown), err)
	}
	for name, c := range map[string]struct {
		bytes   []byte
		damages int
	}{
		"cut":           {append(b[:len(b):len(b)], grown[:50]...), 0},
		"empty entries": {append(b[:len(b):len(b)], make([]byte, 300)...), 0},
		"changed":       {append([]byte{b[0] ^ 1}, b[1:]...), 1},
		"both":          {append(append([]byte{b[0] ^ 1}, b[1:]...), 7), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // what is appended behind it is read again
				o := open(t, dir)
				head := o.add(t, run, 1)
				bad, n, err := o.Check(t.Context())
				if err != nil || len(bad) != c.damages || n != int(head.Seq)+3 {
					t.Fatalf("%+v, %d records, %v", bad, n, err)
				}
				for _, d := range bad {
					if d.Kind != "witness" || d.File != "witness" {
						t.Fatalf("%+v", d)
					}
				}
				o.close(t)
			}
		})
	}
}
