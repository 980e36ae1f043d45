package policy

import (
	"slices"
	"strings"
	"testing"
)

func FuzzDecide(f *testing.F) {
	for _, s := range []string{"ls", "git commit -m x", "git push origin", "rm -rf .", "a 'b c' \"d\" > e 2>&1 | f && g; h & i", "echo $(a `b`) ${c} <(d)", "sh -c 'sh -c \"ls\"'",
		"xargs -n 1 env A=b timeout 5 find . -exec cat {} \\;", "cat <<E\nx\nE", "# a\nls\\\n -a", "cd a && cat ../.env", "{a,b} [c] ?d ~e f*", "sed -i s/a/b/ x", "ls\u202e\x00"} {
		f.Add("execute", s, "/work/w/a", "a", uint8(2))
		f.Add("read", s, "", "", uint8(0))
		f.Add("edit", "", s, s, uint8(3))
	}
	modes := []Mode{ReadOnly, Ask, Auto, Full, "?"}
	rules := []Rule{rule(f, "execute:git push *"), rule(f, "edit:**/*.pem"), rule(f, "read:keep/**"), rule(f, "fetch")}
	f.Fuzz(func(t *testing.T, kind, command, path, asked string, mode uint8) {
		op := Operation{Kind: kind, Command: command}
		if path != "" {
			op.Paths = []string{path}
		}
		if asked != "" {
			op.Asked = []string{asked}
		}
		r := request(modes[int(mode)%len(modes)], op)
		v := Decide(r)
		if again := Decide(r); again != v {
			t.Fatalf("%+v, then %+v", v, again)
		}
		if !slices.Contains([]string{Allow, Reject, AskFor}, v.Outcome) || v.Why == "" || v.Key == "" || tricky(v.Summary+v.Target, false) {
			t.Fatalf("%+v", v)
		}
		readOnly := r
		readOnly.Write = false
		if v := Decide(readOnly); v.Outcome == AskFor || v.Outcome == Allow && !slices.Contains(harmless, strings.ToLower(strings.TrimSpace(kind))) {
			t.Fatalf("a read-only turn: %+v", v)
		}
		if v.Outcome == Allow && (tricky(command, true) || tricky(path, false) || tricky(asked, false)) {
			t.Fatalf("hidden characters are allowed: %+v", v)
		}
		denyBeatsAll(t, r, rules)
		spaced := r
		spaced.Op.Kind = " " + strings.ToUpper(kind)
		if strings.EqualFold(strings.ToLower(spaced.Op.Kind[1:]), strings.ToLower(kind)) && !strings.Contains(command, "<<") {
			spaced.Op.Command = " \t" + command + " "
			if !strings.HasSuffix(command, "\\") && command != "" && !scan(command, 0).odd && Decide(spaced) != shownAs(v, Decide(spaced)) {
				t.Fatalf("spacing changes %+v into %+v", v, Decide(spaced))
			}
		}
	})
}

// denyBeatsAll: whatever the mode and the grants, a rule that denies an operation
// in one mode denies it in all.
func denyBeatsAll(t *testing.T, r Request, rules []Rule) {
	grant := []Grant{{Decide(r).Key}}
	for _, one := range rules {
		r.Deny, r.Grants = []Rule{one}, nil
		denied := Decide(r).Why == "denied_by_rule"
		for _, m := range []Mode{ReadOnly, Ask, Auto, Full} {
			r.Mode, r.Grants = m, grant
			if v := Decide(r); denied && v.Outcome != Reject {
				t.Fatalf("%+v does not deny in %s: %+v", one, m, v)
			}
		}
	}
	r.Deny, r.Mode = []Rule{{Kind: "*", Path: "**"}, {Kind: "execute"}}, Full
	if v := Decide(r); (len(r.Op.Paths) > 0 || r.Op.Command != "") && v.Outcome != Reject {
		t.Fatalf("everything is denied, but %+v", v)
	}
}

// shownAs is v with the card of other: the card shows the spacing.
func shownAs(v, other Verdict) Verdict {
	v.Summary, v.Target = other.Summary, other.Target
	return v
}
