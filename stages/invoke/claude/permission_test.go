package claude

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/policy"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/turn"
)

// ask is a step that asks; the answer becomes text.
func ask(kind, title string, more map[string]any) invoketest.Step {
	p := map[string]any{"kind": kind, "title": title}
	for k, v := range more {
		p[k] = v
	}
	return invoketest.Step{"permission": p}
}

const (
	yes = `permission {"outcome":{"outcome":"selected","optionId":"yes"}}` + "\n"
	no  = `permission {"outcome":{"outcome":"selected","optionId":"no"}}` + "\n"
)

func TestPermissionByPolicy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, title string
		more              map[string]any
		write             bool
		want              string
		body              kernel.PermissionBody
	}{
		{"reading", "read", "Read", map[string]any{"path": "a.go"}, false, yes, kernel.PermissionBody{Asked: "a.go", Resolved: "WS/a.go", Decision: "allow", By: "policy", Kind: "read"}},
		{"editing", "edit", "Write", map[string]any{"path": "a.go"}, false, no, kernel.PermissionBody{Asked: "a.go", Resolved: "WS/a.go", Decision: "reject", By: "policy", Kind: "edit"}},
		{"running", "execute", "Bash", map[string]any{"command": "make all"}, false, no, kernel.PermissionBody{Asked: "make all", Decision: "reject", By: "policy", Kind: "execute"}},
		{"a tool that nobody knows", "", "mcp__x__y", nil, false, no, kernel.PermissionBody{Asked: "mcp__x__y", Decision: "reject", By: "policy", Kind: "other"}},
		{"a writer", "edit", "Write", map[string]any{"path": "a.go"}, true, yes, kernel.PermissionBody{Asked: "a.go", Resolved: "WS/a.go", Decision: "allow", By: "policy", Kind: "edit"}},
		{"a writer's command", "execute", "Bash", map[string]any{"command": "make all"}, true, yes, kernel.PermissionBody{Asked: "make all", Decision: "allow", By: "policy", Kind: "execute"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := invoketest.NewWorld(t)
			a := open(t, w, invoketest.Steps(ask(tc.kind, tc.title, tc.more)), invoketest.Options{})
			if got := w.Good(t, a, w.Request("x", func(tn *kernel.Turn) { tn.Write = tc.write })); got != tc.want {
				t.Errorf("%q", got)
			}
			tc.body.Resolved = strings.Replace(tc.body.Resolved, "WS", w.Workspace, 1)
			if recs := w.Notes(kernel.PermissionRec); len(recs) != 1 || recs[0].Body != tc.body {
				t.Errorf("%+v, want %+v", recs, tc.body)
			}
		})
	}
}

// deciding sets who decides.
func deciding(d turn.Decide) func(*Config) { return func(c *Config) { c.Decide = d } }

func TestWhoDecides(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	var seen []policy.Operation
	a := open(t, w, invoketest.Steps(
		ask("edit", "Write", map[string]any{"path": "a.go", "call": "1", "id": "r-1"}),
		ask("edit", "Write", map[string]any{"path": "a.go", "call": "1", "id": "r-2"}), // the same again
		ask("edit", "Write", map[string]any{"path": "a.go", "call": "2"}),
	), invoketest.Options{}, deciding(func(_ context.Context, _ kernel.Env, _ kernel.Turn, op policy.Operation, offered []policy.Option) policy.Decision {
		seen = append(seen, op)
		if len(offered) != 2 || offered[0].Kind != "allow_once" || offered[1].Kind != "reject_once" {
			t.Errorf("%+v", offered)
		}
		return policy.Decision{Allow: len(seen) == 1, Option: offered[min(len(seen)-1, 1)].ID, By: "person"}
	}))
	if got := w.Good(t, a, w.Request("x")); got != yes+yes+no {
		t.Errorf("%q", got)
	}
	if len(seen) != 2 || len(seen[0].Paths) != 1 || seen[0].Paths[0] != filepath.Join(w.Workspace, "a.go") || seen[0].Asked[0] != "a.go" {
		t.Errorf("%+v", seen)
	}
	recs := w.Notes(kernel.PermissionRec)
	if len(recs) != 2 || recs[0].Body.(kernel.PermissionBody).By != "person" {
		t.Errorf("%+v", recs)
	}
}

func TestOnlyWhatIsOffered(t *testing.T) {
	t.Parallel()
	for _, d := range []policy.Decision{{Allow: true, Option: "forged"}, {Allow: true}, {Allow: false, Option: "deny"}, {}} {
		w := invoketest.NewWorld(t)
		a := open(t, w, invoketest.Steps(ask("edit", "Write", nil)), invoketest.Options{},
			deciding(func(context.Context, kernel.Env, kernel.Turn, policy.Operation, []policy.Option) policy.Decision {
				return d
			}))
		if got := w.Good(t, a, w.Request("x", invoketest.Write)); got != no {
			t.Errorf("%+v: %q", d, got)
		}
		if b := w.Notes(kernel.PermissionRec)[0].Body.(kernel.PermissionBody); b.Decision != "reject" {
			t.Errorf("%+v: %+v", d, b)
		}
	}
}

// A decision that is not on record is not given.
func TestOnRecordFirst(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(ask("read", "Read", nil)), invoketest.Options{},
		deciding(func(context.Context, kernel.Env, kernel.Turn, policy.Operation, []policy.Option) policy.Decision {
			w.RefuseNotes(kernel.E("test", kernel.NoSpace, nil, "full"))
			return policy.Decision{Allow: true, Option: "allow"}
		}))
	if got := w.Good(t, a, w.Request("x")); got != no {
		t.Errorf("%q", got)
	}
}

// A stop ends the question that a person has not answered, and the agent is kept.
func TestStopWhileAPersonIsAsked(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	asked := make(chan struct{})
	a := open(t, w, invoketest.Steps(ask("edit", "Write", nil)), invoketest.Options{Watchdog: turn.Watchdog{CancelGrace: time.Minute}},
		deciding(func(ctx context.Context, _ kernel.Env, _ kernel.Turn, _ policy.Operation, _ []policy.Option) policy.Decision {
			close(asked)
			<-ctx.Done()
			return policy.Decision{Allow: true, Option: "allow"}
		}))
	c := w.Start(t, a, w.Request("x", invoketest.Write))
	<-asked
	c.Stop()
	_, err := c.Wait(t)
	invoketest.Failed(t, err, kernel.ClassCancelled, "stopped")
	if recs := w.Notes(kernel.PermissionRec); len(recs) != 1 || recs[0].Body.(kernel.PermissionBody).Decision != "reject" {
		t.Errorf("%+v", recs)
	}
	if kept(a) == nil {
		t.Error("the agent obeyed and is gone")
	}
}

// A person who takes long is no silence of the agent.
func TestAPersonMayTakeLong(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(ask("edit", "Write", nil)), invoketest.Options{Watchdog: turn.Watchdog{NoOutput: 100 * time.Millisecond, Tool: 100 * time.Millisecond}},
		deciding(func(ctx context.Context, _ kernel.Env, _ kernel.Turn, _ policy.Operation, offered []policy.Option) policy.Decision {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return policy.Decision{Allow: true, Option: offered[0].ID}
		}))
	if got := w.Good(t, a, w.Request("x", invoketest.Write)); got != yes {
		t.Errorf("%q", got)
	}
}

// What is no question about a tool is refused; a request without a usable id, or an
// end that cannot be read, fails closed.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(invoketest.Step{"request": "hook_callback"}), invoketest.Options{})
	if got := w.Good(t, a, w.Request("x")); got != `answer {"error":"method not found: hook_callback"}` {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{`{"type":"control_request","request_id":7,"request":{}}`, `{"type":"result","is_error":"perhaps"}`, `{"type":"control_response","response":[]}`} {
		w := invoketest.NewWorld(t)
		_, err := w.Invoke(t, open(t, w, invoketest.Steps(invoketest.Say("a"), invoketest.Step{"raw": bad + "\n"}, invoketest.Say("b")), invoketest.Options{}), w.Request("x"))
		if f := invoketest.Failed(t, err, kernel.ClassProtocol, "protocol_error"); w.Partial(t, f) != "a" {
			t.Errorf("%s: kept %q", bad, w.Partial(t, f))
		}
	}
}

// An agent that refuses the first request, or gives a result before any prompt,
// is not given one.
func TestNoHandshake(t *testing.T) {
	t.Parallel()
	w := invoketest.NewWorld(t)
	a := open(t, w, invoketest.Steps(invoketest.Say("x")).With("no_init", true), invoketest.Options{Watchdog: turn.Watchdog{Startup: 200 * time.Millisecond}})
	_, err := w.Invoke(t, a, w.Request("x"))
	invoketest.Failed(t, err, kernel.ClassTimeout, "startup_timeout")
	early, err := json.Marshal(map[string]any{"type": "result", "subtype": "success", "is_error": false})
	if err != nil {
		t.Fatal(err)
	}
	a = open(t, w, invoketest.Steps(invoketest.Say("x")).With("no_init", true).With("banner", string(early)+"\n"), invoketest.Options{})
	_, err = w.Invoke(t, a, w.Request("x"))
	invoketest.Failed(t, err, kernel.ClassProtocol, "protocol_error")
	if len(w.Notes(kernel.DeliverySent)) != 0 {
		t.Error("it is on record that the prompt was sent")
	}
}
