package verify_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/kernel/tree"
)

// shell is a kernel.Runner without supervision, which remembers what it ran.
type shell struct {
	mu    sync.Mutex
	lines []string                                // guarded by mu; shell lines, not git
	check func(c kernel.Command)                  // called for each shell line
	fake  func(line string) *kernel.CommandResult // may answer instead
}

func (s *shell) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	line := c.Argv[len(c.Argv)-1]
	if c.Argv[0] != "git" {
		s.mu.Lock()
		s.lines = append(s.lines, line)
		s.mu.Unlock()
		if s.check != nil {
			s.check(c)
		}
		if s.fake != nil {
			if r := s.fake(line); r != nil {
				return *r, nil
			}
		}
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return kernel.CommandResult{}, kernel.E("shell", kernel.NotFound, err, "cannot start")
	}
	return kernel.CommandResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes()}, nil
}

func (s *shell) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// world is a store with a frozen workspace and a turn of an agent.
type world struct {
	t       *testing.T
	packs   *kerneltest.Mem
	shell   *shell
	scratch string
	ws      kernel.Workspace
	changed []kernel.Change
	left    []kernel.CandidateFile // candidate that the turn left, if any
	given   []kernel.CandidateFile // candidate that it started from, if any
}

func newWorld(t *testing.T, files map[string]string) *world {
	w := &world{t: t, packs: kerneltest.NewMem(), shell: &shell{}, scratch: filepath.Join(t.TempDir(), "scratch")}
	w.ws = kernel.Workspace{Kind: "folder", Path: "/gone", Tree: w.tree(files)}
	return w
}

// tree stores files, of which those named d/… are in one folder d.
func (w *world) tree(files map[string]string) kernel.Digest {
	dirs := map[string][]tree.Entry{}
	for name, text := range files {
		dir, base := "", name
		if i := strings.IndexByte(name, '/'); i >= 0 {
			dir, base = name[:i], name[i+1:]
		}
		e := tree.Entry{Type: tree.File, Name: base, Hash: w.put("blob", text), Size: int64(len(text))}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			e.Type, e.Hash = tree.Link, w.put("blob", target)
		}
		dirs[dir] = append(dirs[dir], e)
	}
	encode := func(es []tree.Entry) kernel.Digest {
		for i := range es {
			for j := i; j > 0 && es[j].Name < es[j-1].Name; j-- {
				es[j], es[j-1] = es[j-1], es[j]
			}
		}
		return w.put("tree", string(tree.Encode(nil, es)))
	}
	for dir, es := range dirs {
		if dir != "" {
			dirs[""] = append(dirs[""], tree.Entry{Type: tree.Dir, Name: dir, Hash: encode(es)})
		}
	}
	return encode(dirs[""])
}

func (w *world) put(kind, text string) kernel.Digest {
	w.t.Helper()
	d, err := w.packs.Put(context.Background(), kind, []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) object(kind string, v any) kernel.Digest {
	w.t.Helper()
	d, err := kernel.PutObject(context.Background(), w.packs, kind, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// claim is an answer that claims cs.
func (w *world) claim(cs ...kernel.ClaimText) kernel.Claim {
	w.t.Helper()
	snap := w.object("snapshot", kernel.Snapshot{Version: 1, Workspace: w.ws})
	candidate := func(files []kernel.CandidateFile) (d kernel.Digest) {
		if files != nil {
			d = w.object("candidate", kernel.Candidate{Version: 1, Snapshot: snap, Files: files})
		}
		return d
	}
	turn := w.object("turn", kernel.Turn{Version: 1, Agent: "alpha", Snapshot: snap, Candidate: candidate(w.given)})
	reply := w.object("reply", kernel.Reply{Version: 1, Turn: turn, Changed: w.changed, Candidate: candidate(w.left)})
	return kernel.Claim{Version: 1, Turn: turn, Reply: reply, Source: "text", Claims: cs}
}

func (w *world) env(options string) kernel.Env {
	return kernel.Env{Run: "run_1", Packs: w.packs, Options: []byte(options)}
}

// file is one of a candidate.
func (w *world) file(path, mode, text string) kernel.CandidateFile {
	w.t.Helper()
	return kernel.CandidateFile{Path: path, Hash: w.put("blob", text), Mode: mode, Bytes: int64(len(text))}
}

// clean fails when something is left in scratch.
func (w *world) clean() {
	w.t.Helper()
	left, err := os.ReadDir(w.scratch)
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) != 0 {
		w.t.Errorf("left in scratch: %v, %v", left, err)
	}
}

func exit(n int) *int { return &n }
