package verify

import (
	"context"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/kernel/tree"
)

// copies makes clean copies of what claims are about.
type copies struct {
	run     kernel.Runner
	scratch string // folder below which they are made
}

// candidate is a clean copy.
type candidate struct {
	top string // folder of ours, with all below it
	dir string // the workspace in it
	tmp string // temporary folder of what runs in it
}

func (c candidate) remove() { _ = os.RemoveAll(c.top) }

// make writes a clean copy of what a claim is about, which the caller removes.
func (c copies) make(ctx context.Context, p kernel.Packs, s subject) (candidate, error) {
	ws := s.ws
	if ws.Kind != "git" && ws.Kind != "folder" {
		return candidate{}, &kernel.Failure{Class: kernel.ClassExecution, Reason: "no_candidate", Text: "the snapshot holds no folder to check; use freeze/workspace"}
	}
	fail := func(err error) error {
		return kernel.E("verify.copy", kernel.ReadOnly, err, "no folder for the clean copy").WithNext("make %s writable", c.scratch)
	}
	if err := os.MkdirAll(c.scratch, 0o700); err != nil {
		return candidate{}, fail(err)
	}
	top, err := os.MkdirTemp(c.scratch, "candidate-")
	if err != nil {
		return candidate{}, fail(err)
	}
	out := candidate{top: top, tmp: filepath.Join(top, "tmp")}
	files := filepath.Join(top, "files")
	for _, d := range []string{files, out.tmp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			out.remove()
			return candidate{}, fail(err)
		}
	}
	if out.dir, err = tree.Materialise(ctx, c.run, p, ws, files); err == nil {
		err = tree.Overlay(ctx, p, s.files, out.dir)
	}
	if err != nil {
		out.remove()
		return candidate{}, err
	}
	return out, nil
}

// caches are the folders in which tools keep what they downloaded and compiled.
// Without the one of Go, which is made, every check would start cold; the others
// are used where they are.
func caches() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(home, ".cache")
	}
	pick := func(name string, fallback ...string) string {
		if v := os.Getenv(name); filepath.IsAbs(v) {
			return v
		}
		return filepath.Join(fallback...)
	}
	build := pick("GOCACHE", cache, "go-build")
	_ = os.MkdirAll(build, 0o700) // then the go command says what is wrong
	gopath := filepath.SplitList(pick("GOPATH", home, "go"))[0]
	cargo := pick("CARGO_HOME", home, ".cargo")
	return []string{build, pick("GOMODCACHE", gopath, "pkg", "mod"), filepath.Join(cargo, "registry"), filepath.Join(cargo, "git"),
		filepath.Join(home, ".npm"), filepath.Join(cache, "pip")}
}
