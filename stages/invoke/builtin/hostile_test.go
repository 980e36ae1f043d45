package builtin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/stages/invoke/builtin"
	"witan/stages/invoke/builtin/work"
)

// both runs a test on a plain folder and on the same folder under git.
func both(t *testing.T, files map[string]string, test func(t *testing.T, r *repo)) {
	for _, git := range []bool{false, true} {
		name := "folder"
		if git {
			name = "git"
		}
		t.Run(name, func(t *testing.T) {
			r := newRepo(t, files)
			if git {
				r.commit()
			}
			test(t, r)
		})
	}
}

func (r *repo) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

func TestLinksOut(t *testing.T) {
	outside := t.TempDir()
	secret := "hidden-outside"
	if err := os.WriteFile(filepath.Join(outside, "x.json"), []byte("{"+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	both(t, map[string]string{"a.txt": "a\n", "go.mod": "module host.invalid/l\n\ngo 1.22\n", "l_test.go": "package l\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestL(t *testing.T) {\n\tif _, err := os.Lstat(\"in\"); err != nil {\n\t\tt.Error(err)\n\t}\n\tif _, err := os.Lstat(\"out\"); err == nil {\n\t\tt.Error(\"copied\")\n\t}\n}\n"},
		func(t *testing.T, r *repo) {
			r.link(outside, "out")
			r.link(filepath.Join(outside, "x.json"), "file.json")
			r.link("/etc", "etc")
			r.link("a.txt", "in")
			r.link("loop", "loop")
			r.write("README.md", "# R\n\n[out](out/x.json) [in](in) [loop](loop) [etc](etc/passwd)\n")
			for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
				if id == "runner" && work.Find("go") == "" {
					continue
				}
				out := r.run(id)
				all := out.report.Text
				for _, c := range out.content {
					all += c
				}
				if strings.Contains(all, secret) || strings.Contains(all, "root:") {
					t.Errorf("%s read through a link", id)
				}
				if f := out.findings(); id != "inspector" && len(f) > 0 {
					t.Errorf("%s found %v", id, f)
				}
			}
		})
}

func TestHugeFile(t *testing.T) {
	both(t, map[string]string{"a.json": "{}\n"}, func(t *testing.T, r *repo) {
		f, err := os.Create(filepath.Join(r.dir, "huge.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(100<<20), f.Close()); err != nil {
			t.Fatal(err)
		}
		// Not tracked: it only lies there, and git does not know it.
		want := []string{"huge.json:1"}
		if _, err := os.Stat(filepath.Join(r.dir, ".git")); err == nil {
			want = nil
		}
		if got := r.run("inspector").findings(); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
		if text := r.run("scout").report.Text; !strings.Contains(text, "100.0 MiB") {
			t.Error(text)
		}
	})
}

func TestDeepAndStrange(t *testing.T) {
	deep := strings.Repeat("d/", 200)
	strange := "a\x1b]52;c;eA==\x07\u202e.json"
	both(t, map[string]string{
		deep + "x.json":    "{",
		"deep.json":        strings.Repeat("[", 20_000),
		"deep.yaml":        strings.Repeat("[", 20_000),
		"deep.toml":        "a = " + strings.Repeat("[", 20_000),
		"flow.yaml":        strings.Repeat("- ", 5000) + "x\n",
		"garbage.json":     "\x00\xff\xfe\x01\x02garbage\x00",
		"links.md":         strings.Repeat("](x[", 50_000),
		"ticks.md":         strings.Repeat("` `` ``` ", 20_000),
		"aliases.yaml":     "a: &a [x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
		"open.md":          strings.Repeat("[", 100_000) + strings.Repeat("](y)", 20_000),
		strange:            "{",
		"empty.go":         "",
		"package.json/x":   "a folder with the name of a manifest",
		"Makefile/x":       "",
		"sub/go.mod":       "\xff\xfe",
		"README.md":        "\x1b[31m<witan-receipt>{}</witan-receipt>\x07\n",
		".witanignore":     "[\n#\n/\n",
		"nul\u00a0name.md": "[x](%zz) [y](%00) [z](\x7f)\n",
	}, func(t *testing.T, r *repo) {
		for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
			out := r.run(id)
			if strings.ContainsAny(out.report.Text, "\x1b\x07\u202e") || strings.Contains(out.report.Text, "<witan-") {
				t.Errorf("%s: %q", id, out.report.Text)
			}
			if id == "inspector" {
				got := out.findings()
				for _, want := range []string{"garbage.json:1", strange + ":1"} {
					if !slices.Contains(got, want) {
						t.Errorf("%q is not among %q", want, got)
					}
				}
			}
		}
	})
}

// vanishing removes a file as soon as the agent has listed the workspace.
type vanishing struct {
	turn
	name string
}

func (v *vanishing) Tool(kind, title string) func(bool) {
	os.Remove(v.name)
	return func(bool) {}
}

func TestFileVanishes(t *testing.T) {
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		r := newRepo(t, map[string]string{"go.mod": "module host.invalid/v\n\ngo 1.22\n", "v_test.go": "package v\n", "b.json": "{"})
		v := &vanishing{turn: turn{content: map[kernel.Digest]string{}}, name: filepath.Join(r.dir, "b.json")}
		if _, err := agent(t, id).Run(t.Context(), work.Turn{Workspace: r.dir, State: t.TempDir()}, v); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if got := v.findings(); len(got) > 0 {
			t.Errorf("%s found %v", id, got)
		}
	}
}

func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root reads everything; what is left is that nothing fails")
	}
	both(t, map[string]string{"a.json": "{}", "no/b.json": "{"}, func(t *testing.T, r *repo) {
		if err := os.Chmod(filepath.Join(r.dir, "a.json"), 0); err != nil {
			t.Fatal(err)
		}
		r.run("scout")
		if got := r.run("inspector").findings(); !slices.Equal(got, []string{"no/b.json:1"}) {
			t.Errorf("found %v", got)
		}
	})
}

func TestNoWorkspace(t *testing.T) {
	r := newRepo(t, map[string]string{"file": ""})
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		for dir, kind := range map[string]kernel.Kind{filepath.Join(r.dir, "gone"): kernel.NotFound, filepath.Join(r.dir, "file"): kernel.Invalid} {
			_, err := agent(t, id).Run(t.Context(), work.Turn{Workspace: dir, State: t.TempDir()}, &turn{})
			if !kernel.IsKind(err, kind) {
				t.Errorf("%s in %s: %v", id, dir, err)
			}
		}
		empty := &repo{t: t, dir: t.TempDir()}
		if got := empty.run(id).findings(); len(got) > 0 {
			t.Errorf("%s found %v in an empty folder", id, got)
		}
	}
}

func TestStopped(t *testing.T) {
	r := newRepo(t, map[string]string{"a.json": "{"})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		if out, err := r.try(ctx, id); err == nil || len(out.findings()) > 0 {
			t.Errorf("%s went on after it was stopped: %v", id, err)
		}
	}
}

// TestGitConfiguration checks that a repository cannot make git run programs.
func TestGitConfiguration(t *testing.T) {
	r := newRepo(t, map[string]string{"a.txt": "a\n"})
	r.commit()
	mark := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(r.dir, "evil.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+mark+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := r.read(".git/config")
	r.write(".git/config", config+"[core]\n\tfsmonitor = "+script+"\n\tpager = "+script+"\n[gpg]\n\tprogram = "+script+"\n[log]\n\tshowSignature = true\n[diff]\n\texternal = "+script+"\n")
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		r.run(id)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("git ran a program of the repository")
	}
}

func TestDeterministic(t *testing.T) {
	r := newRepo(t, common)
	for name, text := range goFiles {
		r.write(name, text)
	}
	r.write("x_test.go", "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {\n\tt.Error(\"x\", t.TempDir() == \"\")\n}\n")
	r.write("c.json", "{")
	r.commit()
	for _, id := range []kernel.AgentID{"scout", "inspector", "runner"} {
		a, b := r.run(id), r.run(id)
		if a.report.Text != b.report.Text {
			t.Errorf("%s wrote\n%s\nand then\n%s", id, a.report.Text, b.report.Text)
		}
		if len(a.outcomes) != len(b.outcomes) {
			t.Fatalf("%s: %d and %d outcomes", id, len(a.outcomes), len(b.outcomes))
		}
		for i := range a.outcomes {
			if a.outcomes[i].ID != b.outcomes[i].ID || a.outcomes[i].Hash != b.outcomes[i].Hash {
				t.Errorf("%s: %+v and then %+v\n%s\n%s", id, a.outcomes[i], b.outcomes[i], a.content[a.outcomes[i].Hash], b.content[b.outcomes[i].Hash])
			}
		}
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("aB3dE6gH9", 4)
	r := newRepo(t, map[string]string{"a.env": "X=1\nT=" + token + "\n"})
	out := r.run("inspector")
	if got := out.findings(); !slices.Equal(got, []string{"a.env:2"}) {
		t.Fatalf("found %v", got)
	}
	all := out.report.Text + out.report.Summary
	for _, o := range out.outcomes {
		all += o.Title + o.Detail + out.content[o.Hash]
	}
	if strings.Contains(all, token) {
		t.Errorf("the secret is repeated in %s", all)
	}
}

func TestIgnored(t *testing.T) {
	r := newRepo(t, map[string]string{
		".witanignore":    "# old things\nold/\n*.gen.json\ndocs/*.md\n",
		"old/a.json":      "{",
		"x/old/b.json":    "{",
		"x/y.gen.json":    "{",
		"docs/a.md":       "[x](gone)\n",
		"docs/sub/b.md":   "[x](gone)\n",
		"c.md":            "[x](gone) <!-- witan:ignore -->\n\n<!-- witan:ignore -->\n[y](gone)\n\n[z](gone)\n",
		"fixtures/d.json": "{",
	})
	if got, want := r.run("inspector").findings(), []string{"c.md:6", "docs/sub/b.md:1"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestRunnerInside(t *testing.T) {
	r := newRepo(t, goFiles)
	t.Setenv(work.Inside, "1")
	if text := r.run("runner").report.Text; !strings.Contains(text, work.Inside) {
		t.Error(text)
	}
}

func TestRunnerTimeLimit(t *testing.T) {
	if work.Find("make") == "" {
		t.Log("make is not here; the limit is tested with Go instead")
	}
	r := newRepo(t, map[string]string{"Makefile": "all:\n\ntest: all\n\t@echo begun; while :; do :; done\n"})
	out := r.run("runner", builtin.TestLimit(500*time.Millisecond))
	if work.Find("make") == "" {
		if !strings.Contains(out.report.Text, "need make, which is not installed") {
			t.Error(out.report.Text)
		}
		return
	}
	if !strings.Contains(out.report.Text, "did not finish within 0.5 seconds") || len(out.findings()) > 0 || len(out.report.Claims) > 0 {
		t.Errorf("%s %v", out.report.Text, out.findings())
	}
	if len(out.outcomes) != 1 || out.outcomes[0].Level != "observed" || !strings.Contains(out.content[out.outcomes[0].Hash], "begun") {
		t.Errorf("%+v", out.outcomes)
	}
}
