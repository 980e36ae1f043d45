package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"witan/bus"
	"witan/kernel"
	"witan/kernel/engine"
	"witan/kernel/plans"
	"witan/stores"
)

// floorSample is one append of 600 bytes and an fdatasync: what a durable step
// costs on this machine at this minute.
type floorSample struct{ f *os.File }

func newFloor(b *testing.B) floorSample {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return floorSample{f}
}

func (f floorSample) once(b *testing.B) time.Duration {
	t0 := time.Now()
	if _, err := f.f.Write(make([]byte, 600)); err != nil {
		b.Fatal(err)
	}
	if err := datasync(f.f); err != nil {
		b.Fatal(err)
	}
	return time.Since(t0)
}

type noop[In, Out any] struct {
	id  string
	out Out
}

func (n noop[In, Out]) Spec() kernel.Spec {
	return kernel.Spec{ID: n.id, Version: 1, Class: kernel.Keyed}
}
func (n noop[In, Out]) Run(context.Context, kernel.Env, In) (Out, error) { return n.out, nil }

type clock struct{}

func (clock) Now() time.Time { return time.Now() }
func (clock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// BenchmarkRun drives runs of six stages that do nothing through real stores,
// encrypted, with a view attached, and prints the whole run and one stage
// boundary as ratios to the floor measured between the runs.
func BenchmarkRun(b *testing.B) {
	ctx := context.Background()
	b.Setenv("WITAN_KEY_FILE", filepath.Join(b.TempDir(), "key"))
	st, err := stores.Open(ctx, stores.Options{Dir: filepath.Join(b.TempDir(), "h"), Encryption: true})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	reg := kernel.Registry{}.With(
		kernel.Erase(noop[kernel.Task, kernel.Snapshot]{"freeze/x", kernel.Snapshot{Version: 1}}),
		kernel.Erase(noop[kernel.Turn, kernel.Delivery]{"deliver/x", kernel.Delivery{Version: 1}}),
		kernel.Erase(noop[kernel.Delivery, kernel.Reply]{"invoke/x", kernel.Reply{Version: 1}}),
		kernel.Erase(noop[kernel.Reply, kernel.Claim]{"receipt/x", kernel.Claim{Version: 1}}),
		kernel.Erase(noop[kernel.Claim, kernel.Verdict]{"verify/x", kernel.Verdict{Version: 1, Scope: "attempt", Status: "completed"}}),
		kernel.Erase(noop[kernel.Verdict, kernel.Result]{"commit/x", kernel.Result{Version: 1, Scope: "run"}}))
	stages := map[string]kernel.StageRef{}
	for _, k := range []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"} {
		stages[k] = kernel.StageRef{Use: k + "/x", Class: "keyed"}
	}
	n := 0
	e := engine.New(engine.Deps{Ledger: st.Ledger, Packs: st.Packs, Conversations: st.Conversations, Streams: st.Conversations,
		Control: bus.NewControl(), View: bus.NewView(), Registry: reg, Plans: plans.List{plans.Direct{}}, Clock: clock{}, Log: slog.New(slog.DiscardHandler),
		NewID: func(p string) (string, error) { n++; return kernel.DeriveID(p, fmt.Sprint(n)), nil }})
	if _, err := e.Start(ctx); err != nil {
		b.Fatal(err)
	}
	defer e.Close(ctx)
	floor := newFloor(b)
	var runs, boundaries, floors []time.Duration
	for b.Loop() {
		t0 := time.Now()
		run, _, err := e.Submit(ctx, engine.Submission{Text: "x", Body: kernel.CreatedBody{Plan: "direct", Agents: []kernel.AgentID{"a"},
			Permission: "read-only", Concurrency: 1, Attempts: 8, Stages: stages, Writable: []kernel.AgentID{}}})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Watch(ctx, run, 1, func(json.RawMessage) error { return nil }); err != nil {
			b.Fatal(err)
		}
		runs = append(runs, time.Since(t0))
		boundaries = append(boundaries, stageTimes(b, st, run)...)
		for range 8 {
			floors = append(floors, floor.once(b))
		}
	}
	f := float64(median(floors))
	b.ReportMetric(float64(median(runs))/f, "run-x-of-floor")
	b.ReportMetric(float64(median(boundaries))/f, "boundary-x-of-floor")
	b.ReportMetric(f/1e3, "floor-us")
}

// stageTimes are the times from one stage.finished to the next: everything that
// lies between two stages, and the stage itself, which does nothing.
func stageTimes(b *testing.B, st *stores.Store, run kernel.RunID) []time.Duration {
	var at []time.Time
	for r, err := range st.Ledger.Read(context.Background(), run, 1) {
		if err != nil {
			b.Fatal(err)
		}
		if r.Kind == kernel.StageFinished {
			at = append(at, r.At)
		}
	}
	// Records have milliseconds: the mean over the stages of a run is exact enough.
	if len(at) < 2 {
		b.Fatal("no stages")
	}
	return []time.Duration{at[len(at)-1].Sub(at[0]) / time.Duration(len(at)-1)}
}

// BenchmarkIdleHost starts a long-lived host, leaves it alone for ten seconds and
// prints its anonymous memory and its context switches beside those of a Go
// program that does nothing at all.
func BenchmarkIdleHost(b *testing.B) {
	dir := b.TempDir()
	build := func(name, pkg string) string {
		out := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if msg, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s", msg)
		}
		return out
	}
	src := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(src, []byte("package main\n\nimport \"os\"\n\nfunc main() { println(\"up\"); os.Stdin.Read(make([]byte, 1)) }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	witan, empty := build("witan", "witan/cmd/witan"), build("empty", src)
	for b.Loop() {
		host := exec.Command(witan, "serve", "--json", "--home", filepath.Join(dir, "h"))
		host.Env = append(os.Environ(), "WITAN_KEY_FILE="+filepath.Join(dir, "key"), "XDG_RUNTIME_DIR="+dir, "DBUS_SESSION_BUS_ADDRESS=")
		none := exec.Command(empty)
		in, err := none.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		begin(b, host)
		begin(b, none)
		h0, n0 := switches(b, host.Process.Pid), switches(b, none.Process.Pid)
		time.Sleep(10 * time.Second)
		h1, n1 := switches(b, host.Process.Pid), switches(b, none.Process.Pid)
		b.ReportMetric(anonymousOf(b, host.Process.Pid), "host-anon-MB")
		b.ReportMetric(anonymousOf(b, none.Process.Pid), "empty-anon-MB")
		b.ReportMetric(float64(h1-h0), "host-switches")
		b.ReportMetric(float64(n1-n0), "empty-switches")
		in.Close()
		_ = none.Wait()
		_ = host.Process.Signal(os.Interrupt)
		_ = host.Wait()
	}
}

// begin starts cmd and waits for its first line.
func begin(b *testing.B, cmd *exec.Cmd) {
	b.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	first := make(chan struct{}, 2)
	for _, r := range []interface{ Read([]byte) (int, error) }{out, errs} {
		go func() { _, _ = bufio.NewReader(r).ReadString('\n'); first <- struct{}{} }()
	}
	<-first
}

func procFile(b *testing.B, pid int, name string) string {
	b.Helper()
	t, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return string(t)
}

// switches is the number of voluntary context switches of all threads so far.
func switches(b *testing.B, pid int) int {
	b.Helper()
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, t := range tasks {
		for l := range strings.Lines(procFile(b, pid, "task/"+t.Name()+"/status")) {
			if v, ok := strings.CutPrefix(l, "voluntary_ctxt_switches:"); ok {
				k, _ := strconv.Atoi(strings.TrimSpace(v))
				n += k
			}
		}
	}
	return n
}

// anonymousOf is the anonymous memory of a process in MB.
func anonymousOf(b *testing.B, pid int) float64 {
	b.Helper()
	for l := range strings.Lines(procFile(b, pid, "smaps_rollup")) {
		if v, ok := strings.CutPrefix(l, "Anonymous:"); ok {
			kb, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 64)
			return kb / 1024
		}
	}
	b.Fatal("no Anonymous line")
	return 0
}
