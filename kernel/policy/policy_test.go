package policy

import (
	"strings"
	"testing"
)

const ws = "/work/w"

func request(mode Mode, op Operation) Request {
	return Request{Mode: mode, Write: mode != ReadOnly, Workspace: ws, Output: []string{"/tmp/out"}, Home: "/home/ada", Op: op}
}

func run(cmd string) Operation { return Operation{Kind: "execute", Command: cmd} }

func on(kind string, paths ...string) Operation { return Operation{Kind: kind, Paths: paths} }

func check(t *testing.T, r Request, outcome, why string) {
	t.Helper()
	v := Decide(r)
	if v.Outcome != outcome || why != "" && v.Why != why {
		t.Errorf("%s, %+v: %s %s, want %s %s", r.Mode, r.Op, v.Outcome, v.Why, outcome, why)
	}
	if v.Key == "" || v.Summary == "" || v.Why == "" || tricky(v.Summary+v.Target, false) {
		t.Errorf("%+v: incomplete verdict %+v", r.Op, v)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode         Mode
		op           Operation
		outcome, why string
	}{
		{ReadOnly, on("read", "/work/w/a"), Allow, "no_side_effect"},
		{ReadOnly, on("read", "/etc/passwd"), Allow, "no_side_effect"},
		{ReadOnly, on("search"), Allow, "no_side_effect"},
		{ReadOnly, on("think"), Allow, "no_side_effect"},
		{ReadOnly, on("fetch"), Allow, "no_side_effect"},
		{ReadOnly, on("edit", "/work/w/a"), Reject, "read_only_turn"},
		{ReadOnly, on("delete", "/work/w/a"), Reject, "read_only_turn"},
		{ReadOnly, on("move", "/work/w/a", "/work/w/b"), Reject, "read_only_turn"},
		{ReadOnly, run("ls"), Reject, "read_only_turn"},
		{ReadOnly, on("other"), Reject, "read_only_turn"},
		{ReadOnly, on("switch_mode"), Reject, "read_only_turn"},
		{ReadOnly, on(""), Reject, "read_only_turn"},
		{"", on("edit", "/work/w/a"), Reject, "read_only_turn"},
		{"unheard-of", on("edit", "/work/w/a"), Reject, "read_only_turn"},
		{ReadOnly, Operation{Kind: "read", Command: "cat a | head -3"}, Allow, "no_side_effect"},
		{ReadOnly, Operation{Kind: "read", Command: "ls 2>/dev/null"}, Allow, "no_side_effect"},
		{ReadOnly, Operation{Kind: "read", Command: "rm -rf a"}, Reject, "read_only_turn"},
		{ReadOnly, Operation{Kind: "search", Command: "cat a > b"}, Reject, "read_only_turn"},
		{ReadOnly, Operation{Kind: "search", Command: "cat $(touch x)"}, Reject, "read_only_turn"},
		{ReadOnly, Operation{Kind: "search", Command: "make"}, Reject, "read_only_turn"},

		{Ask, on("read", "/work/w/a"), Allow, "no_side_effect"},
		{Ask, on("read", "/tmp/out/a"), Allow, "no_side_effect"},
		{Ask, on("read", "/work/w2/a"), AskFor, "outside_workspace"},
		{Ask, on("read", "/usr/include/stdio.h"), AskFor, "outside_workspace"},
		{Ask, on("read", "/work/w/.env"), AskFor, "sensitive_path"},
		{Ask, on("read"), AskFor, "unknown_target"},
		{Ask, on("search"), Allow, "no_side_effect"},
		{Ask, on("fetch"), Allow, "no_side_effect"},
		{Ask, on("edit", "/work/w/a"), AskFor, "needs_approval"},
		{Ask, on("delete", "/work/w/a"), AskFor, "needs_approval"},
		{Ask, on("move", "/work/w/a", "/work/w/b"), AskFor, "needs_approval"},
		{Ask, run("ls"), AskFor, "needs_approval"},
		{Ask, on("other"), AskFor, "unknown_tool"},
		{Ask, Operation{Kind: "fetch", Title: "file:///home/ada/x"}, AskFor, "outside_workspace"},
		{Auto, on("fetch", "file:///home/ada/x"), AskFor, "outside_workspace"},
		{Auto, on("fetch", "https://example.org"), Allow, "no_side_effect"},
		{Ask, Operation{Kind: "read", Command: "ls"}, Allow, "no_side_effect"},
		{Ask, Operation{Kind: "read", Command: "make"}, AskFor, "needs_approval"},

		{Auto, on("read", "/work/w/a"), Allow, "no_side_effect"},
		{Auto, on("read", "/usr/include/stdio.h"), Allow, "no_side_effect"},
		{Auto, on("read", "/home/ada/go/pkg/mod/x@v1/a.go"), Allow, "no_side_effect"},
		{Auto, on("read", "/home/ada/letter"), AskFor, "outside_workspace"},
		{Auto, on("read", "/home/ada/.ssh/id_rsa"), AskFor, "sensitive_path"},
		{Auto, on("edit", "/work/w/a"), Allow, "ordinary_work"},
		{Auto, on("edit", "/tmp/out/a"), Allow, "ordinary_work"},
		{Auto, on("edit", "a/../b"), Allow, "ordinary_work"},
		{Auto, on("edit", "../b"), AskFor, "outside_workspace"},
		{Auto, on("edit", "/work/w/../b"), AskFor, "outside_workspace"},
		{Auto, on("edit", "/work/w2"), AskFor, "outside_workspace"},
		{Auto, on("edit", "/usr/include/stdio.h"), AskFor, "outside_workspace"},
		{Auto, on("edit"), AskFor, "unknown_target"},
		{Auto, on("delete", "/work/w/a"), Allow, "ordinary_work"},
		{Auto, on("delete", "/work/w"), AskFor, "removes_workspace"},
		{Auto, on("delete", "/work/w/."), AskFor, "removes_workspace"},
		{Auto, on("delete", "/work"), AskFor, "outside_workspace"},
		{Auto, on("move", "/work/w/a", "/work/w/b"), Allow, "ordinary_work"},
		{Auto, on("move", "/work/w/a", "/work/b"), AskFor, "outside_workspace"},
		{Auto, on("move", "/work/w", "/work/w/b"), AskFor, "removes_workspace"},
		{Auto, on("other"), AskFor, "unknown_tool"},
		{Auto, on("unheard-of", "/work/w/a"), AskFor, "unknown_tool"},
		{Auto, on("execute"), AskFor, "unknown_target"},
		{Auto, Operation{Kind: "execute", Title: "ls"}, AskFor, "unknown_target"},
		{Auto, Operation{Kind: "execute", Title: "`git commit -m x`"}, Reject, "agents_never_commit"},
		{Auto, Operation{Kind: "edit", Paths: []string{"/work/w/plain"}, Asked: []string{".env"}}, AskFor, "sensitive_path"},
		{Auto, Operation{Kind: "edit", Paths: []string{"/home/ada/.ssh/config"}, Asked: []string{"plain"}}, AskFor, "sensitive_path"},
		{Auto, Operation{Kind: "edit", Paths: []string{"/home/ada/x"}, Asked: []string{"plain"}}, AskFor, "outside_workspace"},
		{Auto, Operation{Kind: "edit", Asked: []string{"plain"}}, Allow, "ordinary_work"},
		{Auto, Operation{Kind: "edit", Asked: []string{"../plain"}}, AskFor, "outside_workspace"},
		{Auto, Operation{Kind: "execute", Command: "make", Dir: "/work/w/sub"}, Allow, "ordinary_work"},
		{Auto, Operation{Kind: "execute", Command: "make", Dir: "/home/ada"}, AskFor, "outside_workspace"},
		{Auto, Operation{Kind: "execute", Command: "rm -rf x", Dir: "/usr"}, AskFor, "outside_workspace"},

		{Full, on("edit", "/home/ada/.ssh/config"), Allow, "full_permission"},
		{Full, run("sudo rm -rf /"), Allow, "full_permission"},
		{Full, run("ls $(ls)"), Allow, "full_permission"},
		{Full, on("unheard-of"), Allow, "full_permission"},
		{Full, run("git commit -m x"), Reject, "agents_never_commit"},
		{Full, run("echo $(git commit -m x)"), Reject, "agents_never_commit"},
	} {
		check(t, request(tc.mode, tc.op), tc.outcome, tc.why)
	}
	r := request(Full, on("edit", "/work/w/a"))
	r.Write = false
	check(t, r, Reject, "read_only_turn")
	r = request(Auto, on("edit", "/work/w/a"))
	r.Workspace, r.Output = "", nil
	check(t, r, AskFor, "outside_workspace")
	r.Workspace = "w"
	check(t, r, AskFor, "outside_workspace")
}

func TestSensitivePaths(t *testing.T) {
	t.Parallel()
	for _, p := range strings.Fields(`.env .ENV .env.local .Env.production x/.env prod.env .ssh/config .SSH/x .gnupg/x .aws/credentials .kube/config
		.docker/config.json .config/gh/hosts.yml .config/gcloud/x .netrc .npmrc .pypirc credentials credentials.json a/Credentials id_rsa id_ed25519.pub
		key.pem server.key x.p12 .git/config .git-credentials .bash_history secrets.yaml client_secret_1.json service-account.json .env. .env::$DATA
		a\.ssh\b .terraform.d/credentials.tfrc.json`) {
		check(t, request(Auto, on("read", p)), AskFor, "sensitive_path")
		check(t, request(Auto, run("cat '"+p+"'")), AskFor, "sensitive_path")
	}
	for _, p := range strings.Fields(`.git/hooks/pre-commit .git/HEAD sub/.git/hooks/x .git .bashrc .zshrc .profile .config/fish/config.fish .gitconfig
		.github/workflows/ci.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile .travis.yml azure-pipelines.yml .husky/pre-commit .vscode/tasks.json
		.pre-commit-config.yaml .claude/settings.json .mcp.json sitecustomize.py .gitmodules`) {
		check(t, request(Auto, on("edit", p)), AskFor, "sensitive_path")
		check(t, request(Auto, on("delete", p)), AskFor, "sensitive_path")
		check(t, request(Auto, run("echo x > "+p)), AskFor, "sensitive_path")
		check(t, request(Auto, run("rm -f "+p)), AskFor, "sensitive_path")
		check(t, request(Auto, on("read", p)), Allow, "no_side_effect")
	}
	for _, p := range strings.Fields(`.env.example env environment.go keys.go ssh/x .gitignore .github/README.md github/workflows/x.yml credentials.go
		id.go monkey.go .golangci.yml`) {
		check(t, request(Auto, on("edit", p)), Allow, "ordinary_work")
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	all := []Option{{"A", "allow_always", ""}, {"a", "allow_once", ""}, {"a2", "allow_once", ""}, {"R", "reject_always", ""}, {"r", "reject_once", ""}}
	for _, tc := range []struct {
		outcome string
		offered []Option
		want    string
	}{
		{Allow, all, "a"}, {Reject, all, "r"}, {AskFor, all, ""}, {"", all, ""}, {Allow, all[:1], "A"}, {Reject, all[:4], "R"},
		{Reject, all[:3], ""}, {Allow, all[3:], ""}, {Allow, nil, ""}, {Allow, []Option{{"", "allow_once", ""}}, ""},
		{"allow_once", all, ""}, {Allow, []Option{{"x", "allow", ""}}, ""},
		{Allow, []Option{{"y", "allow_once", ""}, {"y", "reject_once", ""}}, ""}, {Reject, []Option{{"y", "allow_once", ""}, {"y", "reject_once", ""}}, ""},
		{Reject, []Option{{"y", "allow_always", ""}, {"y", "reject_once", ""}, {"n", "reject_always", ""}}, "n"},
	} {
		id, ok := Pick(tc.outcome, tc.offered)
		if id != tc.want || ok != (tc.want != "") {
			t.Errorf("%s of %v: %q, %v", tc.outcome, tc.offered, id, ok)
		}
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	r := request(Auto, run("git push  origin main"))
	v := Decide(r)
	r.Grants = []Grant{{v.Key}}
	check(t, r, Allow, "granted_for_run")
	r.Op.Command = "git push origin 'main'"
	check(t, r, Allow, "granted_for_run")
	r.Op.Command = "git push origin main2"
	check(t, r, AskFor, "publishes")
	// Another worktree of the same run.
	r.Op.Command, r.Workspace = "git push origin main", "/work/other"
	check(t, r, Allow, "granted_for_run")
	// A grant lifts no rejection and covers no text that cannot be read.
	r.Write = false
	check(t, r, Reject, "read_only_turn")
	for _, op := range []Operation{run("git commit"), run("ls\u200b"), {Kind: "other"}, {Kind: "execute"}} {
		r := request(Auto, op)
		r.Grants = []Grant{{Decide(r).Key}}
		if v := Decide(r); v.Outcome == Allow {
			t.Errorf("%+v: %+v", op, v)
		}
	}
}
