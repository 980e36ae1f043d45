package stores_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// appendsEnv makes the child an appender: it adds records to the run of this
// number, opening and closing the directory again and again.
const appendsEnv = "STORES_TEST_APPENDS"

const (
	appends = 1000
	turns   = 10 // of opening the directory
)

func appender(dir, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	for range turns {
		if err := appendSome(dir, kerneltest.Run(n)); err != nil {
			return err
		}
	}
	return nil
}

func appendSome(dir string, run kernel.RunID) error {
	ctx := context.Background()
	s, err := stores.Open(ctx, stores.Options{Dir: dir, Encryption: true})
	for kernel.IsKind(err, kernel.Locked) { // the other one has it
		s, err = stores.Open(ctx, stores.Options{Dir: dir, Encryption: true})
	}
	if err != nil {
		return err
	}
	head, err := s.Ledger.Head(ctx, run)
	if err != nil && !kernel.IsKind(err, kernel.NotFound) {
		return err
	}
	for range appends / turns {
		if head, _, err = s.Ledger.Append(ctx, kerneltest.Batch(run, head, 1, "text")); err != nil {
			return err
		}
	}
	return s.Close()
}

// TestTwoProcesses: two processes that want to write to one directory take
// turns, and no record of either is lost.
func TestTwoProcesses(t *testing.T) {
	keyed(t)
	dir := t.TempDir()
	var children [2]*exec.Cmd
	var said [2]bytes.Buffer
	for i := range children {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), dirEnv+"="+dir, appendsEnv+"="+strconv.Itoa(i))
		c.Stderr = &said[i]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children[i] = c
	}
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, said[i].Bytes())
		}
	}
	s := open(t, stores.Options{Dir: dir})
	defer s.Close()
	for i := range children {
		head, err := s.Ledger.Head(context.Background(), kerneltest.Run(i))
		if err != nil || head.Seq != appends {
			t.Errorf("process %d left %d records, %v", i, head.Seq, err)
		}
	}
	damaged, checked, err := s.CheckLive(context.Background(), func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
	if err != nil || damaged > 0 || checked < 2*appends {
		t.Fatalf("%d damages of %d, %v", damaged, checked, err)
	}
}

// TestOwner: while a process writes, another is refused with its name, and it
// writes on; after it was killed the directory opens at once.
func TestOwner(t *testing.T) {
	keyed(t)
	dir := t.TempDir()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), dirEnv+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	a := &acknowledged{records: map[uint64]string{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		a.note(t, lines.Text())
		if n := a.lines; n != 10 && n != 20 {
			continue
		}
		_, err := stores.Open(context.Background(), stores.Options{Dir: dir})
		if !kernel.IsKind(err, kernel.Locked) || !strings.Contains(err.Error(), fmt.Sprint("process ", c.Process.Pid)) {
			t.Errorf("a second process: %v", err)
		}
		if a.lines == 20 {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
	a.verify(t, dir)
}
