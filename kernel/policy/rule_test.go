package policy

import (
	"strings"
	"testing"

	"witan/kernel"
)

func rule(t testing.TB, s string) Rule {
	t.Helper()
	r, err := ParseRule(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Rule{
		"execute:git push *": {Kind: "execute", Command: "git push *"}, " execute : git   push": {Kind: "execute", Command: "git push"},
		"edit:**/*.pem": {Kind: "edit", Path: "**/*.pem"}, "edit:./a/": {Kind: "edit", Path: "a"}, "*:**/.env": {Kind: "*", Path: "**/.env"},
		"fetch": {Kind: "fetch"}, "delete:*": {Kind: "delete"}, "execute:*": {Kind: "execute"}, "other": {Kind: "other"}, "read:~/x": {Kind: "read", Path: "~/x"},
		"execute:curl https://a:1/*": {Kind: "execute", Command: "curl https://a:1/*"},
	} {
		if got, err := ParseRule(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]string{
		"": "is not a kind", "write:a": "is not a kind", "Edit:a": "is not a kind", "git push": "is not a kind", "*": "deny everything", "edit:": "no pattern", "edit:  ": "no pattern",
		"fetch:https://x": "nothing a pattern could match", "other:x": "nothing a pattern", "edit:[a": "unfinished bracket", "edit:a**b": "stand alone", "edit:../x": "leads out",
		"edit:a/../../x": "leads out", "execute:* push": "which command", "edit:a\u200b": "cannot be seen", "execute:git\x00": "cannot be seen",
	} {
		_, err := ParseRule(s)
		if err == nil || !strings.Contains(err.Error(), want) || kernel.KindOf(err) != kernel.Invalid {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestDenyRules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		rule   string
		op     Operation
		denied bool
	}{
		{"execute:git push *", run("git push origin"), true},
		{"execute:git push *", run("git push"), true},
		{"execute:git push", run("git push origin"), true},
		{"execute:git push", run("git pushx"), false},
		{"execute:git push *", run("git -C a --no-pager push"), true},
		{"execute:git push *", run("ls && 'git' \"push\""), true},
		{"execute:git push *", run("sudo git push"), true},
		{"execute:git push *", run("bash -c 'ls; git push'"), true},
		{"execute:git push *", run("echo $(git push)"), true},
		{"execute:git push *", run("frob git push"), true},
		{"execute:git push *", run("find . -exec git push \\;"), true},
		{"execute:git push *", run("ls | xargs git push"), true},
		{"execute:git push *", run("cat <<E\ngit push\nE"), true},
		{"execute:git push *", run("/usr/bin/git push"), true},
		{"execute:git push *", run("echo 'git push'"), false},
		{"execute:git push *", run("git pull"), false},
		{"execute:git push *", Operation{Kind: "execute", Title: "`git push`"}, true},
		{"execute:git push *", Operation{Kind: "read", Command: "git push"}, true},
		{"execute:npm publish", run("npm --silent publish"), true},
		{"execute:curl *example.org*", run("curl -s https://example.org/x"), true},
		{"execute:curl *example.org*", run("curl -s https://example.com/x"), false},
		{"execute:rm -rf *", run("rm -rf x"), true},
		{"execute:rm -rf *", run("rm x"), false},
		{"execute:g?t push", run("git push"), true},
		{"execute", run("ls"), true},
		{"execute", Operation{Kind: "read", Command: "ls"}, true},
		{"execute", on("edit", "a"), false},
		{"edit:**/*.pem", on("edit", "/work/w/a/b.pem"), true},
		{"edit:**/*.pem", on("edit", "/work/w/b.PEM"), true},
		{"edit:**/*.pem", on("edit", "/elsewhere/b.pem"), true},
		{"edit:**/*.pem", on("edit", "/work/w/b.pem2"), false},
		{"edit:**/*.pem", on("read", "/work/w/b.pem"), false},
		{"edit:**/*.pem", on("delete", "/work/w/b.pem"), true},
		{"edit:**/*.pem", on("other", "/work/w/b.pem"), true},
		{"edit:**/*.pem", run("echo x > a/b.pem"), true},
		{"edit:**/*.pem", run("cp a b.pem"), true},
		{"edit:**/*.pem", run("cat b.pem"), false},
		{"edit:vendor", on("edit", "/work/w/vendor/a/b"), true},
		{"edit:vendor", on("edit", "/work/w/vendor"), true},
		{"edit:vendor", on("edit", "/work/w/vendored"), false},
		{"edit:vendor", on("edit", "/work/w/a/vendor"), false},
		{"edit:vendor", on("edit", "a/../vendor/x"), true},
		{"edit:a/**/b", on("edit", "a/b"), true},
		{"edit:a/**/b", on("edit", "a/x/y/b"), true},
		{"edit:a/**/b", on("edit", "x/a/b"), false},
		{"edit:**", on("edit", "a"), true},
		{"edit", on("edit"), true},
		{"edit", run("touch a"), true},
		{"edit", run("ls"), false},
		{"read:**/.env", on("read", ".env"), true},
		{"read:**/.env", on("edit", ".env"), true},
		{"read:**/.env", run("cat sub/.env"), true},
		{"read:**/.env", run("cd sub && cat .env"), true},
		{"read:**/.env", Operation{Kind: "read", Paths: []string{"/work/w/x"}, Asked: []string{".env"}}, true},
		{"read:~/notes", run("cat ~/notes/a"), true},
		{"read:~/notes", run("cat $HOME/notes/a"), true},
		{"read:/home/ada/notes", run("cat ~/notes/a"), true},
		{"read:~/notes", on("read", "/home/ada/notes/a"), true},
		{"delete:src", on("delete", "src/a"), true},
		{"delete:src", run("rm src/a"), true},
		{"delete:src", on("edit", "src/a"), false},
		{"edit:src/keep/*", run("rm -rf src"), true},
		{"edit:src/keep/*", on("delete", "/work/w/src"), true},
		{"edit:src/keep/*", run("rm -rf src/other"), false},
		{"edit:src/keep/*", run("touch src"), false},
		{"move", on("move", "a", "b"), true},
		{"fetch", on("fetch"), true},
		{"other", on("unheard-of"), true},
		{"*:secret/**", on("search", "secret/x"), true},
		{"*:secret/**", on("think"), false},
	} {
		for _, m := range []Mode{ReadOnly, Ask, Auto, Full} {
			r := request(m, tc.op)
			r.Deny = []Rule{rule(t, "execute:never this"), rule(t, tc.rule)}
			r.Grants = []Grant{{Decide(r).Key}}
			if v := Decide(r); (v.Why == "denied_by_rule") != tc.denied || tc.denied && v.Outcome != Reject {
				t.Errorf("%s in %s, %+v: %s %s", tc.rule, m, tc.op, v.Outcome, v.Why)
			}
		}
	}
}
