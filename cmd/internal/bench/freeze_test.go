package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/freeze"
	"witan/stores"
	"witan/stores/db"
)

// childEnv holds the job of a child: memory is measured in a process of its own.
const childEnv = "WITAN_BENCH_FREEZE"

type job struct {
	Home, Workspace string
	Passes          int
}

// figures are what a child measured: the first pass is cold, unless the home
// has seen the workspace before.
type figures struct {
	Passes  []time.Duration
	PeakKiB int64
	Tree    kernel.Digest
	Files   int
}

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	var j job
	err := json.Unmarshal([]byte(raw), &j)
	if err == nil {
		err = child(j)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// noRunner is right for folders that are not in a git repository.
type noRunner struct{}

func (noRunner) Run(context.Context, kernel.Command) (kernel.CommandResult, error) {
	return kernel.CommandResult{}, kernel.E("bench", kernel.NotFound, nil, "no programs here")
}

func child(j job) error {
	ctx := context.Background()
	s, err := stores.Open(ctx, stores.Options{Dir: j.Home, Encryption: true})
	if err != nil {
		return err
	}
	peak := watchMemory()
	env := kernel.Env{Now: time.Now, Log: slog.New(slog.DiscardHandler), Packs: s.Packs}
	var f figures
	for range j.Passes {
		start := time.Now()
		snap, err := freeze.Workspace(noRunner{}, s.Packs).Run(ctx, env, kernel.Task{Version: kernel.ObjectVersion, Text: "bench", Workspace: j.Workspace})
		if err != nil {
			return err
		}
		f.Passes = append(f.Passes, time.Since(start))
		if f.Files = snap.Workspace.Files; !f.Tree.IsZero() && f.Tree != snap.Workspace.Tree {
			return errors.New("an unchanged folder has another tree")
		}
		f.Tree = snap.Workspace.Tree
	}
	f.PeakKiB = peak()
	if err := s.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// watchMemory samples the anonymous memory of the process until the returned
// function is called, which gives the peak in KiB; 0 where the system does not say.
func watchMemory() func() int64 {
	var peak atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(5 * time.Millisecond)
		defer t.Stop()
		for {
			peak.Store(max(peak.Load(), anonymous()))
			select {
			case <-t.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int64 { close(stop); <-done; return peak.Load() }
}

func anonymous() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), "RssAnon:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
			return n
		}
	}
	return 0
}

// ours freezes in a child with an encrypted store of its own.
func ours(b *testing.B, j job) figures {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(j)
	if err != nil {
		b.Fatal(err)
	}
	settle()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw), db.KeyFileEnv+"="+j.Home+".key")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	var f figures
	if err := json.Unmarshal(out, &f); err != nil {
		b.Fatal(err)
	}
	return f
}

// settle lets the disk finish what the one before wrote, where there is such a
// program: nobody is to wait for somebody else's files.
func settle() { _ = exec.Command("sync").Run() }

// git times `git add -A && git write-tree` of a folder.
func git(b *testing.B, gitDir, workspace string) time.Duration {
	b.Helper()
	settle()
	start := time.Now()
	for _, args := range [][]string{{"add", "-A"}, {"write-tree"}} {
		cmd := exec.Command("git", append([]string{"--git-dir=" + gitDir, "--work-tree=" + workspace, "-c", "core.autocrlf=false"}, args...)...)
		cmd.Dir = workspace
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return time.Since(start)
}

func median[T int64 | float64 | time.Duration](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkFreeze compares freezing GOROOT/src, encrypted, with what git needs
// for the same: cold, unchanged, and the peak of anonymous memory.
func BenchmarkFreeze(b *testing.B) {
	const rounds, passes = 3, 9
	src := filepath.Join(b.TempDir(), "src")
	if err := os.CopyFS(src, os.DirFS(filepath.Join(goroot(b), "src"))); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var cold, unchanged, peaks, coldMS, unchangedMS []float64
		files := 0
		for range rounds {
			dir := b.TempDir()
			gitDir := filepath.Join(dir, "git")
			if out, err := exec.Command("git", "init", "-q", "--bare", gitDir).CombinedOutput(); err != nil {
				b.Fatalf("git init: %v\n%s", err, out)
			}
			theirs := git(b, gitDir, src)
			f := ours(b, job{filepath.Join(dir, "home"), src, passes})
			files = f.Files
			cold = append(cold, float64(theirs)/float64(f.Passes[0]))
			coldMS = append(coldMS, f.Passes[0].Seconds()*1000)
			peaks = append(peaks, float64(f.PeakKiB)/1024)
			var again []time.Duration
			for range passes {
				again = append(again, git(b, gitDir, src))
			}
			warm := median(f.Passes[1:])
			unchanged = append(unchanged, float64(warm)/float64(median(again)))
			unchangedMS = append(unchangedMS, warm.Seconds()*1000)
		}
		b.ReportMetric(float64(files), "files")
		b.ReportMetric(median(cold), "cold_git/ours")
		b.ReportMetric(median(coldMS), "cold_ms")
		b.ReportMetric(median(unchanged), "unchanged_ours/git")
		b.ReportMetric(median(unchangedMS), "unchanged_ms")
		b.ReportMetric(slices.Max(peaks), "peak_anon_MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// goroot is the folder of the Go tree that is at hand.
func goroot(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// BenchmarkFreezeMemory gives the peak of anonymous memory for trees that are
// large in one way: a directory of many entries, many directories, a large file.
func BenchmarkFreezeMemory(b *testing.B) {
	for name, grow := range map[string]func(dir string) error{
		"wide": func(dir string) error { return fill(dir, 100_000) },
		"many": func(dir string) error {
			for i := range 1000 {
				if err := fill(filepath.Join(dir, strconv.Itoa(i%40), strconv.Itoa(i)), 100); err != nil {
					return err
				}
			}
			return nil
		},
		"large": func(dir string) error {
			f, err := os.Create(filepath.Join(dir, "large"))
			if err != nil {
				return err
			}
			_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), 512<<20)
			return errors.Join(err, f.Close())
		},
	} {
		b.Run(name, func(b *testing.B) {
			src := filepath.Join(b.TempDir(), "src")
			if err := errors.Join(os.Mkdir(src, 0o755), grow(src)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				f := ours(b, job{filepath.Join(b.TempDir(), "home"), src, 3})
				b.ReportMetric(float64(f.Files), "files")
				b.ReportMetric(float64(f.PeakKiB)/1024, "peak_anon_MiB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fill makes n small files that differ.
func fill(dir string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%07d.txt", i)), fmt.Append(nil, dir, i), 0o644); err != nil {
			return err
		}
	}
	return nil
}
