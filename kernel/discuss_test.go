package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/plans"
)

// talk is a discussion of members; decide is the owner's decision at its turn.
func talk(t *testing.T, form string, rounds int, decide func(at *kernel.Attempt) obj, members ...kernel.AgentID) *sim {
	m := newSim(t, plans.Discuss{}, 16, members...).with(func(c *kernel.CreatedBody) { c.Form, c.MaxRounds = form, rounds })
	m.says = func(at *kernel.Attempt) any {
		r := obj{"version": 1, "phase": "discuss", "summary": "s"}
		if d := decide(at); d != nil {
			r["decision"] = d
		}
		return r
	}
	return m
}

func done() obj { return obj{"status": "completed", "deliverables": []string{"d"}} }

func TestDiscussPaths(t *testing.T) {
	a := kernel.AgentID("a")
	for _, tc := range []struct {
		name, form string
		rounds     int
		decide     func(at *kernel.Attempt) obj
		norm       func(at *kernel.Attempt) string
		fail       func(at *kernel.Attempt) bool
		checks     func(at *kernel.Attempt) (string, []kernel.ClaimVerdict)
		answer     string
		write      bool
		phases     string
		end        kernel.RunStatus
		reason     string
	}{
		{name: "led-completed", decide: func(at *kernel.Attempt) obj {
			if at.Body.Agent == a && at.Body.Round == 2 {
				return done()
			}
			return nil
		}, phases: "d1(a b c) d2(a)", end: kernel.RunCompleted},
		{name: "led-routed", write: true, decide: func(at *kernel.Attempt) obj {
			switch {
			case at.Body.Agent == a && at.Body.Round == 2:
				return obj{"status": "continue", "next": []string{"c", "b", "nobody", "c"}}
			case at.Body.Agent == a && at.Body.Round == 4:
				return obj{"status": "continue", "handoff": "b"}
			case at.Body.Agent == a && at.Body.Round == 6:
				return done()
			case at.Body.Agent == "b": // only the owner decides
				return done()
			}
			return nil
		}, rounds: 8, phases: "d1(a b c) d2(a!) d3(c b) d4(a!) d5(b) d6(a!)", end: kernel.RunCompleted},
		{name: "led-absent-handoff", decide: func(at *kernel.Attempt) obj {
			switch {
			case at.Body.Agent == a && at.Body.Round == 2:
				return obj{"status": "continue", "handoff": "nobody"}
			case at.Body.Agent == a && at.Body.Round == 3:
				return done()
			}
			return nil
		}, phases: "d1(a b c) d2(a) d3(a)", end: kernel.RunCompleted},
		{name: "led-peer-blocked", decide: func(at *kernel.Attempt) obj {
			switch {
			case at.Body.Agent == a && at.Body.Round == 2:
				return obj{"status": "continue", "next": []string{"b"}}
			case at.Body.Agent == "b" && at.Body.Round == 3:
				return obj{"status": "blocked", "reason": "no key"}
			case at.Body.Agent == a && at.Body.Round == 4:
				return done()
			}
			return nil
		}, phases: "d1(a b c) d2(a) d3(b) d4(a)", end: kernel.RunCompleted},
		{name: "led-blocked", decide: func(at *kernel.Attempt) obj { return obj{"status": "blocked"} }, phases: "d1(a b c) d2(a)", end: kernel.RunBlocked, reason: "owner_blocked"},
		{name: "led-needs-human", decide: func(at *kernel.Attempt) obj {
			if at.Body.Round == 2 {
				return obj{"status": "needs-human", "reason": "which one?"}
			}
			return done()
		}, answer: "reply", phases: "d1(a b c) d2(a) d3(a)", end: kernel.RunCompleted},
		{name: "led-needs-human-stop", decide: func(at *kernel.Attempt) obj { return obj{"status": "needs-human"} }, answer: "stop",
			phases: "d1(a b c) d2(a)", end: kernel.RunStopped, reason: "stopped_by_person"},
		{name: "led-round-limit", decide: func(*kernel.Attempt) obj { return nil }, rounds: 3, phases: "d1(a b c) d2(a) d3(a)", end: kernel.RunRoundLimit, reason: "round_limit"},
		{name: "led-checks-fail", decide: func(at *kernel.Attempt) obj { return done() }, checks: func(at *kernel.Attempt) (string, []kernel.ClaimVerdict) {
			if at.Body.Round == 2 {
				return "partial", nil
			}
			return "", nil
		}, phases: "d1(a b c) d2(a)", end: kernel.RunPartial, reason: "verify_failed"},
		{name: "led-owner-lost", decide: func(*kernel.Attempt) obj { return nil }, fail: func(at *kernel.Attempt) bool { return at.Body.Agent == a && at.Body.Round == 2 },
			phases: "d1(a b c) d2(a)", end: kernel.RunPartial, reason: "owner_lost"},
		{name: "led-peer-lost", decide: func(at *kernel.Attempt) obj {
			switch {
			case at.Body.Agent == a && at.Body.Round == 2:
				return obj{"status": "continue", "next": []string{"b", "c"}} // b failed: it is not asked again
			case at.Body.Agent == a && at.Body.Round == 4:
				return done()
			}
			return nil
		}, fail: func(at *kernel.Attempt) bool { return at.Body.Agent == "b" }, phases: "d1(a b c) d2(a) d3(c) d4(a)", end: kernel.RunPartial, reason: "some_agents_failed"},
		{name: "sequential-completed", form: "sequential", decide: func(at *kernel.Attempt) obj {
			if at.Body.Agent == a && at.Body.Round == 2 {
				return done()
			}
			return nil
		}, phases: "d1(a) d1(b) d1(c) d2(a)", end: kernel.RunCompleted},
		{name: "sequential-round-limit", form: "sequential", write: true, decide: func(*kernel.Attempt) obj { return nil }, rounds: 2,
			phases: "d1(a!) d1(b) d1(c) d2(a!) d2(b) d2(c)", end: kernel.RunRoundLimit, reason: "round_limit"},
		{name: "sequential-stalled", form: "sequential", decide: func(*kernel.Attempt) obj { return nil }, rounds: 10,
			norm: func(at *kernel.Attempt) string { return "thanks" }, end: kernel.RunPartial, reason: "stalled",
			phases: strings.TrimSpace(strings.Join(func() (s []string) {
				for r := range 8 { // window 6, and two more
					s = append(s, fmt.Sprintf("d%d(a) d%d(b) d%d(c)", r+1, r+1, r+1))
				}
				return s
			}(), " "))},
		{name: "sequential-one-is-new", form: "sequential", decide: func(*kernel.Attempt) obj { return nil }, rounds: 9,
			norm: func(at *kernel.Attempt) string {
				if at.Body.Agent == "c" {
					return string(at.ID)
				}
				return "thanks"
			}, end: kernel.RunRoundLimit, reason: "round_limit"},
		{name: "unlimited-confirmed", form: "sequential", rounds: -1, answer: "continue", decide: func(at *kernel.Attempt) obj { return done() }, phases: "d1(a)", end: kernel.RunCompleted},
		{name: "unlimited-refused", form: "sequential", rounds: -1, answer: "stop", decide: func(at *kernel.Attempt) obj { return done() }, phases: "", end: kernel.RunStopped, reason: "stopped_by_person"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			form, rounds := tc.form, tc.rounds
			if form == "" {
				form = "agent-led"
			}
			switch rounds {
			case 0:
				rounds = 6
			case -1:
				rounds = 0
			}
			m := talk(t, form, rounds, tc.decide, "a", "b", "c")
			if tc.write {
				m.with(func(c *kernel.CreatedBody) { c.Permission, c.Writable = "full", []kernel.AgentID{"a", "b"} })
			}
			m.norm, m.checks = tc.norm, tc.checks
			m.failAt(tc.fail)
			if tc.answer != "" {
				m.answer = func(*kernel.Gate) string { return tc.answer }
			}
			m.drive()
			if got := m.phases(); tc.name != "sequential-one-is-new" && got != tc.phases {
				t.Errorf("phases\n%s, not\n%s", got, tc.phases)
			}
			m.wantEnd(tc.end, tc.reason)
			m.replay()
			m.golden("discuss-" + tc.name)
		})
	}
}
