package verify_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"witan/kernel"
	"witan/stages/verify"
)

// newRepo is a world whose workspace is a repository with a commit, tracked changes
// and an untracked file.
func newRepo(t *testing.T) (w *world, git func(args ...string) string) {
	t.Helper()
	w = newWorld(t, map[string]string{"a": ""})
	repo := t.TempDir()
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %s", args, b)
		}
		return strings.TrimSpace(string(b))
	}
	git("init", "-q")
	for name, text := range map[string]string{"keep": "kept", "edit": "old", "gone": "x", "sub/x": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("add", ".")
	git("commit", "-q", "-m", "m")
	w.ws = kernel.Workspace{Kind: "git", Path: repo, Commit: git("rev-parse", "HEAD"), Dirty: []kernel.DirtyFile{
		{Path: "edit", Status: "modified", Hash: w.put("blob", "new"), Mode: "0644", Bytes: 3},
		{Path: "gone", Status: "deleted"},
		{Path: "staged", Status: "added", Hash: w.put("blob", "staged"), Mode: "0644", Bytes: 6},
		{Path: "sub/run", Status: "untracked", Hash: w.put("blob", "#!/bin/sh\nexit 0\n"), Mode: "0755", Bytes: 17},
	}}
	return w, git
}

// passes runs one command, and returns the content that the evidence names.
func (w *world) passes(line string, want bool) kernel.Digest {
	w.t.Helper()
	v := command(w.t, w, options(line))
	b, err := w.packs.Get(w.t.Context(), v.Outcomes[0].Hash)
	if err != nil {
		w.t.Fatal(err)
	}
	if passed := v.Results[0].Verdict == verify.Verified; passed != want || passed != (v.Status == "completed") {
		w.t.Errorf("%s: %+v\n%s", line, v.Results, b)
	}
	var rec struct{ Candidate kernel.Digest }
	if err := json.Unmarshal(b, &rec); err != nil {
		w.t.Fatal(err)
	}
	return rec.Candidate
}

const frozen = `test "$(cat keep)" = kept && test "$(cat edit)" = new && ! test -e gone && test -e staged && ! test -e .git`

// Untracked files of the person make no check pass; those of the candidate do.
func TestGitCandidate(t *testing.T) {
	w, git := newRepo(t)
	before := git("status", "--porcelain")
	w.passes(frozen+" && ! test -e sub/run", true)
	w.passes("./sub/run", false)
	w.changed = []kernel.Change{{Path: "new", What: "added"}}
	w.left = []kernel.CandidateFile{w.file("new/x", "0755", "#!/bin/sh\n"), w.file("staged", "0644", "more"), {Path: "sub/x", What: "deleted"}}
	w.passes(frozen+` && ./new/x && test "$(cat staged)" = more && ! test -e sub`, true)
	w.passes("./sub/run", false)
	w.left = append(w.left, w.file("sub/run", "0755", "#!/bin/sh\nexit 0\n"))
	w.passes("./sub/run", true)
	if after := git("status", "--porcelain"); after != before {
		t.Errorf("the repository changed: %q, was %q", after, before)
	}
}

func TestFolderCandidate(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1", "d/b": "1", "c": "1"})
	w.changed = []kernel.Change{{Path: "a", What: "modified"}}
	w.left = []kernel.CandidateFile{w.file("a", "0644", "2"), {Path: "d/b", What: "deleted"}, w.file("d", "link", "a")}
	w.passes(`test "$(cat a c d)" = 212`, true)
}

// Who only reads is judged by what it was given; who wrote by what it left.
func TestWhichCandidate(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	w.given = []kernel.CandidateFile{w.file("a", "0644", "2")}
	w.passes("grep -q 2 a", true)
	w.left = []kernel.CandidateFile{w.file("a", "0644", "3")}
	w.passes("grep -q 3 a", true)
	w.left = []kernel.CandidateFile{}
	w.passes("grep -q 1 a", true)
	// It changed files and nobody knows how: nothing that was run counts.
	w.left, w.changed = nil, []kernel.Change{{Path: "a", What: "modified"}}
	if v := command(t, w, options("true")); v.Results[0].Verdict != verify.Unverified || v.Results[0].Reason != verify.ReasonOldContent {
		t.Errorf("%+v", v.Results)
	}
}

// Evidence names the content: the same for the same, whoever made it, and another for
// another.
func TestContentOfEvidence(t *testing.T) {
	w, _ := newRepo(t)
	seen := map[kernel.Digest]string{}
	other := func(name string) kernel.Digest {
		t.Helper()
		d := w.passes("true", true)
		if was, ok := seen[d]; ok {
			t.Errorf("%s has the content of %s", name, was)
		}
		seen[d] = name
		return d
	}
	plain := other("the snapshot")
	w.left = []kernel.CandidateFile{}
	if w.passes("true", true) != plain {
		t.Error("a candidate without files is other content")
	}
	w.ws.Dirty = w.ws.Dirty[:3]
	if w.passes("true", true) != plain {
		t.Error("an untracked file is part of the content")
	}
	w.left = []kernel.CandidateFile{w.file("edit", "0644", "2")}
	changed := other("a change")
	w.left, w.given = nil, w.left
	if w.passes("true", true) != changed {
		t.Error("the same content as it was given is another")
	}
	w.given, w.ws.Dirty[0] = nil, kernel.DirtyFile{Path: "edit", Status: "modified", Hash: w.put("blob", "2"), Mode: "0644", Bytes: 1}
	if w.passes("true", true) != changed {
		t.Error("the same content as it was frozen is another")
	}
	w.left = []kernel.CandidateFile{w.file("edit", "0755", "2")}
	other("another mode")
	w.left = []kernel.CandidateFile{{Path: "edit", What: "deleted"}}
	other("a deletion")
	w.ws.Sub = "sub"
	other("another folder")
	w.left = []kernel.CandidateFile{w.file("x", "0644", "2")}
	below := other("a file of the folder")
	w.left, w.ws.Dirty = nil, append(w.ws.Dirty, kernel.DirtyFile{Path: "sub/x", Status: "modified", Hash: w.put("blob", "2"), Mode: "0644", Bytes: 1})
	if w.passes("true", true) != below {
		t.Error("the same content of a folder below is another")
	}
}

func TestFilesOfACandidate(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	w.changed = []kernel.Change{{Path: "b", What: "added"}}
	w.left = []kernel.CandidateFile{w.file("b", "0644", "2"), {Path: "a", What: "deleted"}}
	claims := []kernel.ClaimText{{Text: "c", Path: "b", Hash: kernel.Sum([]byte("2")).String()}, {Text: "d", Path: "a"}}
	v, err := verify.Schema(w.shell, w.scratch).Run(t.Context(), w.env(""), w.claim(claims...))
	if err != nil || v.Results[0].Verdict != verify.Verified || v.Results[1].Verdict != verify.Contradicted {
		t.Errorf("%+v, %v", v.Results, err)
	}
	w.clean()
}

func TestCandidateThatCannotBe(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "1"})
	w.left = []kernel.CandidateFile{w.file("../a", "0644", "2")}
	stage := verify.Command(w.shell, w.scratch)
	if _, err := stage.Run(t.Context(), w.env(options("true")), w.claim()); !kernel.IsKind(err, kernel.Unsupported) {
		t.Errorf("leads out: %v", err)
	}
	w.left = nil
	cl := w.claim()
	foreign := w.object("candidate", kernel.Candidate{Version: 1, Snapshot: kernel.Sum([]byte("another")), Files: []kernel.CandidateFile{}})
	for d, kind := range map[kernel.Digest]kernel.Kind{foreign: kernel.Invalid, kernel.Sum([]byte("gone")): kernel.NotFound} {
		cl.Reply = w.object("reply", kernel.Reply{Version: 1, Turn: cl.Turn, Candidate: d})
		if _, err := stage.Run(t.Context(), w.env(options("true")), cl); !kernel.IsKind(err, kind) {
			t.Errorf("want %v: %v", kind, err)
		}
	}
	if n := len(w.shell.ran()); n != 0 {
		t.Errorf("%d commands ran", n)
	}
	w.clean()
}
