package invoketest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

// Script is what a scripted agent does: the keys are those of cmd/fakeagent.
type Script map[string]any

// Step is one thing it does.
type Step map[string]any

// Steps is a script that answers every prompt in the same way.
func Steps(s ...Step) Script { return Script{"steps": s} }

// Say is a step that says something.
func Say(text string) Step { return Step{"text": text} }

// With returns s with a further key.
func (s Script) With(key string, value any) Script {
	out := Script{key: value}
	for k, v := range s {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// fake is the agent's program, built once for a test binary.
var fake struct {
	once sync.Once
	dir  string
	path string
	err  error
}

func buildFake() {
	if fake.dir, fake.err = os.MkdirTemp("", "fakeagent-"); fake.err != nil {
		return
	}
	fake.path = filepath.Join(fake.dir, "fakeagent")
	res, err := proc.Runner{}.Run(context.Background(), kernel.Command{Argv: []string{"go", "build", "-o", fake.path, "witan/cmd/fakeagent"}, Dir: ".", Env: os.Environ()})
	if err == nil && res.Exit != 0 {
		err = fmt.Errorf("go build: %s", res.Stderr)
	}
	fake.err = err
}

func removeFake() {
	if fake.dir != "" {
		_ = os.RemoveAll(fake.dir)
	}
}

// Program returns how to start a scripted agent in a process of its own,
// confined as a host confines it. Flags go before the script, rest behind it.
func (w *World) Program(t *testing.T, s Script, flags, rest []string) func(turn.Place) (proc.Spec, error) {
	t.Helper()
	fake.once.Do(buildFake)
	if fake.err != nil {
		t.Fatal(fake.err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(t.TempDir(), "script-*.json")
	if err == nil {
		_, err = f.Write(b)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append(append(append([]string{}, flags...), f.Name()), rest...)
	return func(p turn.Place) (proc.Spec, error) {
		write := []string{p.State}
		if p.Write {
			write = append(write, p.Workspace)
		}
		return proc.Spec{Path: fake.path, Args: args, Dir: p.Workspace, Env: proc.Env(map[string]string{"TMPDIR": p.State}),
			Confine: true, Write: write, KillGrace: killGrace, Marker: "WITAN_RUN=" + string(p.Run)}, nil
	}
}
