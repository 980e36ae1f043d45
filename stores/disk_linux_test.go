package stores_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

const (
	diskEnv     = "STORES_TEST_DISK" // where the child mounts its small disk
	diskRefused = 3                  // exit code of a child that may not mount
	diskBytes   = 112 << 20
	ballast     = 24 << 20
)

// smallDisk is a disk that fills up, with the data directory on it.
type smallDisk struct {
	root, home string
	free       func(string) (int64, error) // nil for a real one
}

// TestFullDisk fills a real disk of 112 MiB, mounted by a child in a namespace of
// its own. Where that is not allowed, free space is counted instead.
func TestFullDisk(t *testing.T) {
	keyed(t)
	if root := os.Getenv(diskEnv); root != "" {
		if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=112m"); err != nil {
			os.Exit(diskRefused)
		}
		d := smallDisk{root: root, home: filepath.Join(root, "home")}
		d.fillUp(t)
		d.readOnly(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$")
	cmd.Env = append(os.Environ(), diskEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
	ids := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids(os.Getuid()), ids(os.Getgid())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() != diskRefused:
		t.Fatalf("%v\n%s", err, out)
	default:
		t.Logf("no disk can be mounted here (%v)", err)
		root := t.TempDir()
		smallDisk{root: root, home: filepath.Join(root, "home"), free: func(string) (int64, error) {
			return diskBytes - used(t, root), nil
		}}.fillUp(t)
	}
}

// used is what the files of a folder take on the disk.
func used(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(p, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		n += st.Blocks * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fillUp writes until writing is refused. What was acknowledged is there, can
// be read, survives a close and a kill, and with more room writing goes on.
func (d smallDisk) fillUp(t *testing.T) {
	extra := filepath.Join(d.root, "ballast")
	if err := os.WriteFile(extra, bytes.Repeat([]byte{1}, ballast), 0o600); err != nil {
		t.Fatal(err)
	}
	o := stores.Options{Dir: d.home, Encryption: true, Free: d.free}
	s := open(t, o)
	records, packs := d.write(t, s, kernel.Head{})
	if records < 20 || packs < 20 {
		t.Fatalf("refused after %d records and %d packs", records, packs)
	}
	verify := func(s *stores.Store) {
		t.Helper()
		n, p := 0, 0
		for _, err := range s.Ledger.Read(context.Background(), kerneltest.Run(1), 1) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		for p < packs {
			if _, err := s.Packs.Get(context.Background(), kernel.Sum(kerneltest.Random(uint64(p), 60_000))); err != nil {
				t.Fatal(err)
			}
			p++
		}
		damaged, _, err := s.CheckLive(context.Background(), func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
		if n != records || damaged > 0 || err != nil {
			t.Fatalf("%d records of %d, %d damages, %v", n, records, damaged, err)
		}
	}
	verify(s)
	_, _, err := s.Compact() // has no room for new tables beside the old ones
	wantNoSpace(t, err, d.home)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := stores.Open(context.Background(), o); err == nil {
		verify(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		wantNoSpace(t, err, d.home)
	}
	if err := os.Remove(extra); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	verify(s)
	head, err := s.Ledger.Head(context.Background(), kerneltest.Run(1))
	if err != nil {
		t.Fatal(err)
	}
	more, _ := d.write(t, s, head)
	if more < 20 {
		t.Fatalf("with more room, refused after %d records", more)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantNoSpace(t *testing.T, err error, dir string) {
	t.Helper()
	wantKind(t, err, kernel.NoSpace)
	if ke := err.(*kernel.Error); !strings.Contains(ke.What, dir) || ke.Next == "" {
		t.Fatalf("neither the place nor a next step in %v", err)
	}
}

// write stores records and packs until a record is refused.
func (d smallDisk) write(t *testing.T, s *stores.Store, head kernel.Head) (records, packs int) {
	ctx := context.Background()
	for {
		h, _, err := s.Ledger.Append(ctx, kerneltest.Batch(kerneltest.Run(1), head, 1, strings.Repeat("x", 1000)))
		if err != nil {
			wantNoSpace(t, err, d.home)
			return records, packs
		}
		head = h
		records++
		if _, err := s.Packs.Put(ctx, "blob", kerneltest.Random(uint64(packs), 60_000)); err == nil {
			packs++
		} else {
			wantNoSpace(t, err, d.home)
		}
	}
}

// readOnly opens the directory on a disk that cannot be written.
func (d smallDisk) readOnly(t *testing.T) {
	if err := unix.Mount("", d.root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	refused(t, d.home, kernel.ReadOnly)
}
