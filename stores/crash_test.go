package stores_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// The child is this test binary again. It writes to the data directory named
// by dirEnv without end and prints a line for everything that was acknowledged.
const (
	dirEnv   = "STORES_TEST_DIR"
	pointEnv = "STORES_TEST_POINT" // the crash point at whose nthEnv-th call the child dies
	nthEnv   = "STORES_TEST_NTH"
)

func TestMain(m *testing.M) {
	if n := os.Getenv(appendsEnv); n != "" {
		if err := appender(os.Getenv(dirEnv), n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(dirEnv); dir != "" {
		if err := child(dir, os.Getenv(pointEnv), os.Getenv(nthEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// die ends this process as SIGKILL does.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

// blob is the nth pack of a child; every third one goes to a file.
func blob(n uint64) []byte {
	if n%3 == 0 {
		return kerneltest.Random(n, 200_000)
	}
	return fmt.Appendf(nil, "pack %d", n)
}

func child(dir, point, nth string) error {
	ctx := context.Background()
	left, _ := strconv.Atoi(nth)
	s, err := stores.Open(ctx, stores.Options{Dir: dir, Encryption: true, Crash: func(p string) {
		if p != point {
			return
		}
		if left--; left == 0 {
			die()
		}
	}})
	if err != nil {
		return err
	}
	run := kerneltest.Run(1)
	head, err := s.Ledger.Head(ctx, run)
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		return err
	}
	for {
		n := head.Seq + 1
		if _, err := s.Packs.Put(ctx, "text", blob(n)); err != nil {
			return err
		}
		fmt.Println("pack", n)
		w, err := s.Packs.Begin(ctx)
		if err != nil {
			return err
		}
		for i := range uint64(3) {
			if _, err := w.Add("blob", blob(1000*n+i)); err != nil {
				return err
			}
		}
		if err := w.Seal(); err != nil {
			return err
		}
		fmt.Println("bulk", n)
		if err := s.Conversations.AppendStream(ctx, "atp_1", fmt.Appendf(nil, "%d;", n)); err != nil {
			return err
		}
		fmt.Println("chunk", n)
		h, _, err := s.Ledger.Append(ctx, kerneltest.Batch(run, head, 1, strings.Repeat("word ", 100)))
		if err != nil {
			return err
		}
		head = h
		fmt.Println("record", head.Seq, head.Hash)
		if err := s.Ledger.Witness(ctx); err != nil {
			return err
		}
	}
}

// acknowledged is what children printed.
type acknowledged struct {
	packs, bulks, chunks []uint64
	records              map[uint64]string
	lines                int
}

// run starts a child and reads its lines until it dies, killing it after
// `most` lines (0 = it dies on its own).
func (a *acknowledged) run(t *testing.T, dir, point string, nth, most int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), dirEnv+"="+dir, pointEnv+"="+point, nthEnv+"="+strconv.Itoa(nth))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines, n := bufio.NewScanner(out), 1; lines.Scan(); n++ {
		a.note(t, lines.Text())
		if n == most {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the child ended with %v: %s", err, stderr.Bytes())
	}
}

func (a *acknowledged) note(t *testing.T, line string) {
	t.Helper()
	var what, hash string
	var n uint64
	if k, _ := fmt.Sscan(line, &what, &n, &hash); k < 2 {
		t.Fatalf("the child printed %q", line)
	}
	a.lines++
	switch what {
	case "pack":
		a.packs = append(a.packs, n)
	case "bulk":
		a.bulks = append(a.bulks, n)
	case "chunk":
		a.chunks = append(a.chunks, n)
	case "record":
		a.records[n] = hash
	}
}

// verify opens the directory and looks for everything acknowledged.
func (a *acknowledged) verify(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	s := open(t, stores.Options{Dir: dir})
	defer s.Close()
	if len(s.DB.Damaged) > 0 {
		t.Fatalf("damage after a crash: %+v", s.DB.Damaged)
	}
	seen := uint64(0)
	for r, err := range s.Ledger.Read(ctx, kerneltest.Run(1), 1) {
		if kernel.IsKind(err, kernel.NotFound) && len(a.records) == 0 {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := a.records[r.Seq]; want != "" && kernel.HashRecord(r.Encode()).String() != want {
			t.Fatalf("record %d is not the acknowledged one", r.Seq)
		}
		seen = r.Seq
	}
	for n := range a.records {
		if n > seen {
			t.Fatalf("acknowledged record %d is gone, the chain ends at %d", n, seen)
		}
	}
	var want [][]byte
	for _, n := range a.packs {
		want = append(want, blob(n))
	}
	for _, n := range a.bulks {
		want = append(want, blob(1000*n), blob(1000*n+1), blob(1000*n+2))
	}
	for _, b := range want {
		if got, err := s.Packs.Get(ctx, kernel.Sum(b)); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("an acknowledged pack of %d bytes: %v", len(b), err)
		}
	}
	stream, err := s.Conversations.ReadStream(ctx, "atp_1")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range a.chunks {
		if !strings.Contains(";"+string(stream), fmt.Sprintf(";%d;", n)) {
			t.Fatalf("acknowledged chunk %d is gone", n)
		}
	}
	damaged, _, err := s.CheckLive(ctx, func(r stores.CheckRow) error { t.Errorf("damage: %+v", r); return nil })
	if err != nil || damaged > 0 {
		t.Fatalf("check: %d damages, %v", damaged, err)
	}
	if left, err := os.ReadDir(dir + "/packs"); err != nil {
		t.Fatal(err)
	} else {
		for _, e := range left {
			if strings.HasSuffix(e.Name(), ".tmp") {
				t.Fatalf("%s was left behind", e.Name())
			}
		}
	}
}

// TestCrashPoints ends the child at every named point, early and late.
func TestCrashPoints(t *testing.T) {
	for _, point := range []string{
		"ledger.append.before", "ledger.append.after", "ledger.witness", "packs.put.before", "packs.put.after",
		"packs.seal.before_rename", "packs.seal.after_rename", "packs.index",
	} {
		t.Run(point, func(t *testing.T) {
			keyed(t)
			dir := t.TempDir()
			a := &acknowledged{records: map[uint64]string{}}
			for _, nth := range []int{1, 5} {
				a.run(t, dir, point, nth, 0)
				a.verify(t, dir)
			}
			if a.lines == 0 {
				t.Fatal("nothing was acknowledged")
			}
		})
	}
}

// TestKill ends the child from outside at random moments, again and again in
// the same directory, without a clean close in between.
func TestKill(t *testing.T) {
	keyed(t)
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	a := &acknowledged{records: map[uint64]string{}}
	for range 6 {
		a.run(t, dir, "", 0, 1+random.IntN(60))
		if random.IntN(2) == 0 { // else the next child finds what this one left
			a.verify(t, dir)
		}
	}
	a.verify(t, dir)
}
