package policy

import "testing"

func TestDecide(t *testing.T) {
	all := []Option{{"a2", "allow_always", ""}, {"a1", "allow_once", ""}, {"a1b", "allow_once", ""}, {"r", "reject_once", ""}}
	for _, tc := range []struct {
		write bool
		kind  string
		opts  []Option
		allow bool
		opt   string
	}{
		{false, "read", all, true, "a1"},
		{false, "edit", all, false, "r"},
		{false, "execute", all, false, "r"},
		{false, "", all, false, "r"},
		{false, "unheard-of", all, false, "r"},
		{true, "edit", all, true, "a1"},
		{false, "edit", all[:3], false, ""},
		{false, "read", all[:1], false, ""},
		{false, "read", nil, false, ""},
	} {
		d := Decide(tc.write, Operation{Kind: tc.kind}, tc.opts)
		if d.Allow != tc.allow || d.Option != tc.opt {
			t.Errorf("%+v: %+v", tc, d)
		}
	}
}
