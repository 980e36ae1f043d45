package policy

import (
	"slices"
	"strings"
	"testing"
)

// Characters that hide, reorder or imitate.
var tricks = []string{"\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u202a", "\u2066", "\u2069", "\u200f", "\u061c",
	"\u00a0", "\u2003", "\u3000", "\u202f", "\u1680", "\u2028", "\u2029", "\u0085", "\u3164", "\u115f", "\uffa0", "\u2800", "\u034f", "\ufe0f",
	"\U000e0041", "\U000e0100", "\x00", "\x07", "\x08", "\x1b[2K", "\r", "\v", "\f", "\x7f", "\u0080", "\xff", "\xc0\xaf", "\ufffd"}

func TestTricksAreNeverAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range tricks {
		for _, op := range []Operation{
			run("ls a" + c), run("ls" + c + "-la"), run(c + "ls"), run("ls # " + c), run("echo '" + c + "'"),
			on("read", "/work/w/a"+c), on("edit", "/work/w/"+c+"a"), {Kind: "read", Paths: []string{"/work/w/a"}, Asked: []string{"a" + c}},
			{Kind: "fetch", Title: "https://example.org/" + c}, {Kind: "read" + c, Paths: []string{"/work/w/a"}},
			{Kind: "execute", Command: "ls", Dir: "/work/w/" + c},
		} {
			for _, m := range []Mode{ReadOnly, Ask, Auto, Full} {
				r := request(m, op)
				r.Grants = []Grant{{Decide(r).Key}}
				v := Decide(r)
				if v.Outcome == Allow {
					t.Errorf("%s %+q is allowed: %s", m, op, v.Why)
				}
				if tricky(v.Summary+v.Target, false) {
					t.Errorf("%+q is shown as %+q, %+q", op, v.Summary, v.Target)
				}
			}
		}
	}
}

func TestLongTextIsNeverAllowed(t *testing.T) {
	t.Parallel()
	many := make([]string, maxPaths+1)
	for i := range many {
		many[i] = "/work/w/a"
	}
	for _, op := range []Operation{
		run("ls" + strings.Repeat(" a", maxCommand/2)), on("read", "/work/w/"+strings.Repeat("a", maxPath)), on("read", many...),
		{Kind: "think", Title: strings.Repeat("a", maxTitle+1)},
	} {
		for _, m := range []Mode{ReadOnly, Ask, Auto, Full} {
			if v := Decide(request(m, op)); v.Outcome == Allow || v.Why != "too_long" && v.Why != "read_only_turn" || len(v.Summary) > 4*maxCard || len(v.Target) > 4*maxCard {
				t.Errorf("%s: %s %s, %d and %d bytes", m, v.Outcome, v.Why, len(v.Summary), len(v.Target))
			}
		}
	}
	// A commit is found in a long text too.
	check(t, request(Full, run("git commit -m "+strings.Repeat("a", maxCommand))), Reject, "agents_never_commit")
}

// What costs a scanner time must not cost it much.
func TestHostileSizes(t *testing.T) {
	t.Parallel()
	deny, err := ParseRule("execute:git push *")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"a ", "(", "$(", "`", "{", "{a,", "${", "'", "\"", "# ", "#'\n", "<<a\n", "sh -c 'a b' ", "x 'y z' ", "env ", "sudo ", "\\", "[", "1", "1>", "~", "git -c ", "xargs ", "find -exec ", "find . -exec sudo {} ; ", "cd a;", "*", "=", "a=b "} {
		r := request(Auto, run(strings.Repeat(s, maxExamined/len(s)+1)))
		r.Deny = []Rule{deny}
		if v := Decide(r); v.Outcome == Allow {
			t.Errorf("%q", s)
		}
	}
	nested := "ls"
	for range 12 {
		nested = Join([]string{"sh", "-c", nested})
		if len(nested) > maxCommand {
			break
		}
		_ = Decide(request(Auto, run(nested)))
	}
}

func TestCards(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		op              Operation
		summary, target string
	}{
		{run("ls\u202e x"), "Run: ls⟨U+202E⟩ x", "/work/w"},
		{run("ls\npwd\ta"), "Run: ls ⏎ pwd a", "/work/w"},
		{run("a\xff\x00"), "Run: a⟨FF⟩⟨U+0000⟩", "/work/w"},
		{run("rm -rf ../x"), "Run: rm -rf ../x", "/work/x"},
		{Operation{Kind: "execute", Command: "ls", Dir: "/work/w/sub"}, "Run: ls", "/work/w/sub"},
		{Operation{Kind: "edit", Asked: []string{"link"}, Paths: []string{"/etc/x\u200b"}}, "Edit: link", "/etc/x⟨U+200B⟩"},
		{Operation{Kind: "edit", Title: "Edit it", Asked: []string{"a"}, Paths: []string{"/work/w/a"}}, "Edit: Edit it", "/work/w/a"},
		{Operation{Kind: "move", Paths: []string{"/work/w/a", "/work/w/b"}}, "Move: /work/w/a, /work/w/b", "/work/w/a, /work/w/b"},
		{Operation{Kind: "new-kind", Title: "Send"}, "Use: Send", "/work/w"},
		{run("echo " + strings.Repeat("é", 500)), "Run: echo " + strings.Repeat("é", 395) + "… (105 more characters)", "/work/w"},
	} {
		if v := Decide(request(Auto, tc.op)); v.Summary != tc.summary || v.Target != tc.target {
			t.Errorf("%+q:\n%q, %q", tc.op, v.Summary, v.Target)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	key := func(op Operation) string { return Decide(request(Auto, op)).Key }
	for _, same := range [][]Operation{
		{run("git  push origin"), run(" git push\torigin "), run("git push origin\n"), run("git push \\\n origin"), run("'git' push \"origin\""), run("bash -lc 'git push origin'"), run("sh -c \"git  push origin\"")},
		{run("ls;pwd"), run("ls ; pwd"), run("ls\npwd"), run("\nls\n\n pwd;")},
		{run("ls>a"), run("ls > a"), run("ls >a")},
		{run("ls $(pwd)"), run("ls  $( pwd )")},
		{run("echo '*'"), run(`echo \*`), run(`echo "*"`)},
		{on("edit", "/work/w/a"), on("edit", "a"), on("edit", "./b/../a"), on("EDIT ", "/work/w//a"), {Kind: "edit", Title: "whatever", Paths: []string{"/work/w/a"}, Asked: []string{"x"}}},
		{{Kind: "other", Title: "Send  it"}, {Kind: "unheard-of", Title: "Send it "}},
	} {
		for _, op := range same[1:] {
			if key(op) != key(same[0]) {
				t.Errorf("%+q and %+q differ", op, same[0])
			}
		}
	}
	var keys []string
	for _, op := range []Operation{
		run("git push origin"), run("git pushorigin"), run("git push 'origin '"), run("ls; pwd"), run("ls && pwd"), run("ls | pwd"), run("ls & pwd"), run("ls pwd"),
		run("ls *"), run("ls '*'"), run("ls $A"), run("ls '$A'"), run("ls ~"), run(`ls \~`), run("ls > a"), run("ls >> a"), run("ls < a"), run("ls '>' a"), run("ls 2> a"),
		run("echo 'a  b'"), run("echo 'a b'"), run("echo a b"), run("cat <<E\na\nE"), run("cat <<E\n a\nE"), run("A=b ls"), run("'A=b' ls x"), run("ls ''"), run(`ls '""'`),
		{Kind: "execute", Command: "ls pwd", Dir: "/work/w/a"}, {Kind: "read", Command: "ls pwd"}, on("edit", "/work/w/a"), on("edit", "/work/a"), on("edit", "workspace:a"),
		on("delete", "/work/w/a"), on("edit", "/work/w/a", "/work/w/b"), on("edit", "/work/w/a/work/w/b"), {Kind: "other", Title: "a"}, {Kind: "other", Title: "b"},
		{Kind: "fetch", Title: "https://a"}, {Kind: "fetch", Title: "https://b"}, {Kind: "execute", Title: "ls pwd"},
	} {
		k := key(op)
		if slices.Contains(keys, k) {
			t.Errorf("%+q has the key of another one", op)
		}
		keys = append(keys, k)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"bash", "-lc", "git commit -m 'x'"}, {"a b", "", "'", `\`, "$x", "*", "~", "#", "a=b", "x\ny", "{a,b}", "!", "a;b"}, {"A=b", "c"}} {
		c := scan(Join(words), 0)
		var got []string
		for _, s := range c.segs {
			for _, w := range s.words {
				if !w.literal() {
					t.Errorf("%q is not literal", w.text)
				}
				got = append(got, w.text)
			}
		}
		if c.odd || len(c.segs) != 1 || !slices.Equal(got, words) {
			t.Errorf("%q became %q", words, got)
		}
	}
}
