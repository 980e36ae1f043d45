package kernel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/plans"
)

type obj = map[string]any

// work is a plan of one worker item for all but the finalizer, who integrates.
func work(finalizer kernel.AgentID, members ...kernel.AgentID) obj {
	var items []obj
	for _, m := range members {
		it := obj{"id": "W-" + string(m), "owner": m, "role": "worker", "objective": "o", "expected_output": "e", "inputs": []string{}, "depends_on": []string{}}
		if m == finalizer {
			it["role"] = "integrator"
		}
		items = append(items, it)
	}
	return obj{"items": items, "finalizer": finalizer}
}

// chain lets every worker item depend on the one before.
func chainOf(p obj) obj {
	last := ""
	for _, it := range p["items"].([]obj) {
		if it["role"] == "worker" {
			if last != "" {
				it["depends_on"] = []string{last}
			}
			last = it["id"].(string)
		}
	}
	return p
}

// council are members that agree on work("c") and support everything; over
// changes what an attempt says.
func council(t testing.TB, over func(at *kernel.Attempt, r obj) obj, members ...kernel.AgentID) *sim {
	m := newSim(t, plans.Council{}, 16, members...)
	m.says = func(at *kernel.Attempt) any {
		r := obj{"version": 1, "phase": at.Body.Phase, "summary": "s"}
		switch at.Body.Phase {
		case "challenge":
			r["verdict"], r["findings"], r["plan"] = "support", []obj{}, work(members[len(members)-1], members...)
		case "work":
			r["item"] = at.Body.Item
		case "verification":
			r["verdict"], r["findings"] = "support", []obj{}
		}
		if over != nil {
			r = over(at, r)
		}
		if r == nil {
			return nil
		}
		return r
	}
	return m
}

func (m *sim) rounds(n int) *sim { return m.with(func(c *kernel.CreatedBody) { c.MaxRounds = n }) }

// with starts the run again with another submission.
func (m *sim) with(change func(*kernel.CreatedBody)) *sim {
	c := m.s.Created
	change(&c)
	m.s, m.recs, m.log = kernel.NewState("run_1"), nil, nil
	m.put(kernel.RunCreated, "", "", c)
	return m
}

// phases tells which phases the run had, with the agents of each.
func (m *sim) phases() string {
	var out []string
	for _, p := range m.s.Phases {
		var who []string
		for _, sl := range p.Slots {
			w := string(sl.Agent)
			if sl.Write {
				w += "!"
			}
			who = append(who, w)
		}
		out = append(out, fmt.Sprintf("%s%d(%s)", p.Name[:1], p.Round, strings.Join(who, " ")))
	}
	return strings.Join(out, " ")
}

func only(phase string, round int, at *kernel.Attempt) bool {
	return at.Body.Phase == phase && (round == 0 || at.Body.Round == round)
}

func TestCouncilPaths(t *testing.T) {
	type change = func(at *kernel.Attempt, r obj) obj
	a, b, c := kernel.AgentID("a"), kernel.AgentID("b"), kernel.AgentID("c")
	for _, tc := range []struct {
		name   string
		say    change
		fail   func(at *kernel.Attempt) bool
		checks func(at *kernel.Attempt) (string, []kernel.ClaimVerdict)
		answer string
		write  bool
		phases string
		end    kernel.RunStatus
		reason string
	}{
		{name: "agreed-in-round-1", phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)", end: kernel.RunCompleted},
		{name: "agreed-writing", write: true, phases: "p1(a b c) c1(a b c) w1(a b) s1(c!) v1(a b)", end: kernel.RunCompleted},
		{name: "waves", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				r["plan"] = chainOf(work(c, a, b, c))
			}
			return r
		}, phases: "p1(a b c) c1(a b c) w1(a) w2(b) s1(c) v1(a b)", end: kernel.RunCompleted},
		{name: "agreed-in-round-2", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 1, at) && at.Body.Agent == b {
				r["plan"] = work(a, a, b, c)
			}
			return r
		}, phases: "p1(a b c) c1(a b c) c2(a b c) w1(a b) s1(c) v1(a b)", end: kernel.RunCompleted},
		{name: "no-agreement", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				r["plan"] = work(at.Body.Agent, a, b, c)
			}
			return r
		}, phases: "p1(a b c) c1(a b c) c2(a b c) c3(a b c)", end: kernel.RunRoundLimit, reason: "no_agreement"},
		{name: "cycle", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				p := work(c, a, b, c)
				p["items"].([]obj)[0]["depends_on"], p["items"].([]obj)[1]["depends_on"] = []string{"W-b"}, []string{"W-a"}
				r["plan"] = p
			}
			return r
		}, phases: "p1(a b c) c1(a b c) c2(a b c) c3(a b c)", end: kernel.RunRoundLimit, reason: "no_agreement"},
		{name: "idle-member", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				r["plan"] = work(c, a, c)
			}
			return r
		}, phases: "p1(a b c) c1(a b c) c2(a b c) c3(a b c)", end: kernel.RunRoundLimit, reason: "no_agreement"},
		{name: "unknown-input", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) { // only its inputs tell the plans apart, and they are not known
				p := work(c, a, b, c)
				p["items"].([]obj)[0]["inputs"] = []string{"msg_a", "from " + string(at.Body.Agent), "msg_a"}
				r["plan"] = p
			}
			return r
		}, phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)", end: kernel.RunCompleted},
		{name: "lost-in-proposal", say: func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				r["plan"] = work(c, b, c)
			}
			return r
		}, fail: func(at *kernel.Attempt) bool { return only("proposal", 0, at) && at.Body.Agent == a },
			phases: "p1(a b c) c1(b c) w1(b) s1(c) v1(b)", end: kernel.RunCompleted},
		{name: "too-few", fail: func(at *kernel.Attempt) bool { return at.Body.Agent != c }, phases: "p1(a b c)", end: kernel.RunPartial, reason: "agent_died"},
		{name: "lost-in-challenge", fail: func(at *kernel.Attempt) bool { return only("challenge", 0, at) && at.Body.Agent == a },
			phases: "p1(a b c) c1(a b c) c2(a b c) c3(a b c)", end: kernel.RunRoundLimit, reason: "no_agreement"},
		{name: "back-in-challenge", fail: func(at *kernel.Attempt) bool { return only("challenge", 1, at) && at.Body.Agent == a },
			phases: "p1(a b c) c1(a b c) c2(a b c) w1(a b) s1(c) v1(a b)", end: kernel.RunCompleted},
		{name: "lost-in-work", fail: func(at *kernel.Attempt) bool { return only("work", 0, at) && at.Body.Agent == b },
			phases: "p1(a b c) c1(a b c) w1(a b)", end: kernel.RunPartial, reason: "agent_died"},
		{name: "lost-in-synthesis", fail: func(at *kernel.Attempt) bool { return only("synthesis", 0, at) },
			phases: "p1(a b c) c1(a b c) w1(a b) s1(c)", end: kernel.RunPartial, reason: "agent_died"},
		{name: "lost-in-verification", fail: func(at *kernel.Attempt) bool { return only("verification", 0, at) && at.Body.Agent == a },
			phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)", end: kernel.RunPartial, reason: "agent_died"},
		{name: "contradicted-then-resolved", write: true, say: func(at *kernel.Attempt, r obj) obj {
			switch {
			case only("verification", 1, at) && at.Body.Agent == a:
				r["verdict"], r["findings"] = "contradict", []obj{{"severity": "high", "title": "broken", "detail": "d"}}
			case only("synthesis", 2, at):
				r["resolved"] = []string{"I1"}
			}
			return r
		}, phases: "p1(a b c) c1(a b c) w1(a b) s1(c!) v1(a b) s2(c!) v2(a b)", end: kernel.RunCompleted},
		{name: "issue-not-resolved", say: func(at *kernel.Attempt, r obj) obj {
			if only("verification", 1, at) && at.Body.Agent == a {
				r["verdict"] = "contradict"
			}
			return r
		}, answer: "stop", phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b) s2(c) v2(a b) s3(c) v3(a b)", end: kernel.RunRoundLimit, reason: "not_accepted"},
		{name: "contradicted-to-the-limit", say: func(at *kernel.Attempt, r obj) obj {
			if only("verification", 0, at) {
				r["verdict"] = "contradict"
			}
			return r
		}, answer: "stop", phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b) s2(c) v2(a b) s3(c) v3(a b)", end: kernel.RunRoundLimit, reason: "not_accepted"},
		{name: "continued-behind-the-limit", say: func(at *kernel.Attempt, r obj) obj {
			switch {
			case only("verification", 0, at) && at.Body.Round < 4:
				r["verdict"] = "contradict"
			case only("synthesis", 0, at):
				r["resolved"] = []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8"}
			}
			return r
		}, answer: "continue", phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b) s2(c) v2(a b) s3(c) v3(a b) s4(c) v4(a b)", end: kernel.RunCompleted},
		{name: "checks-fail", checks: func(at *kernel.Attempt) (string, []kernel.ClaimVerdict) {
			if only("synthesis", 1, at) {
				return "partial", []kernel.ClaimVerdict{{Claim: "go test", Source: "command", Verdict: "contradicted", Reason: "exit", Evidence: []kernel.OutcomeID{}}}
			}
			return "", nil
		}, say: func(at *kernel.Attempt, r obj) obj {
			if only("synthesis", 2, at) {
				r["resolved"] = []string{"I1"}
			}
			return r
		}, phases: "p1(a b c) c1(a b c) w1(a b) s1(c) s2(c) v2(a b)", end: kernel.RunCompleted},
		{name: "no-verdict", say: func(at *kernel.Attempt, r obj) obj {
			if only("verification", 0, at) {
				return nil
			}
			return r
		}, answer: "stop", phases: "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b) s2(c) v2(a b) s3(c) v3(a b)", end: kernel.RunRoundLimit, reason: "not_accepted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := council(t, tc.say, a, b, c).with(func(cb *kernel.CreatedBody) {
				cb.MaxRounds = 3
				if tc.write {
					cb.Permission, cb.Writable = "full", []kernel.AgentID{a, b, c}
				}
			})
			m.checks = tc.checks
			m.failAt(tc.fail)
			if tc.answer != "" {
				m.answer = func(*kernel.Gate) string { return tc.answer }
			}
			m.drive()
			if got := m.phases(); got != tc.phases {
				t.Errorf("phases\n%s, not\n%s", got, tc.phases)
			}
			m.wantEnd(tc.end, tc.reason)
			if n := strings.Count(strings.Join(m.log, "\n")+"\n", "\ncommit\n"); (n == 1) != (tc.end == kernel.RunCompleted) || n > 1 {
				t.Errorf("%d commits", n)
			}
			m.replay()
			m.golden("council-" + tc.name)
		})
	}
}

// failAt lets an attempt's invoke fail for good where fail says so.
func (m *sim) failAt(fail func(at *kernel.Attempt) bool) {
	if fail == nil {
		return
	}
	m.failAttempt = func(at *kernel.Attempt) *kernel.StageEndBody {
		if fail(at) {
			return &kernel.StageEndBody{Class: kernel.ClassExecution, Reason: "agent_died"}
		}
		return nil
	}
}

// Every split of three members over two plans starts no work; that all support
// one does.
func TestSplitsStartNoWork(t *testing.T) {
	members := []kernel.AgentID{"a", "b", "c"}
	for split := range 8 {
		m := council(t, func(at *kernel.Attempt, r obj) obj {
			if only("challenge", 0, at) {
				i := slices.Index(members, at.Body.Agent)
				r["plan"] = work([]kernel.AgentID{"b", "c"}[split>>i&1], members...)
			}
			return r
		}, members...).rounds(2)
		m.drive()
		working := strings.Contains(m.phases(), "w1")
		if want := split == 0 || split == 7; working != want {
			t.Errorf("split %03b: %s", split, m.phases())
		}
	}
}

// A plan is supported by its hash too, and the hash is of one snapshot.
func TestSupportByHash(t *testing.T) {
	p := plans.WorkPlan{Finalizer: "b", Items: []plans.Item{{ID: "2", Owner: "b", Role: "integrator"}, {ID: "1", Owner: "a", Role: "worker", DependsOn: []string{}}}}
	members := []kernel.AgentID{"a", "b"}
	one, err := p.Normalise(kernel.Sum([]byte("one")), members, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.Normalise(kernel.Sum([]byte("two")), members, nil)
	if err != nil || one.Hash == two.Hash {
		t.Errorf("the same plan on another snapshot has the same hash: %v", err)
	}
	m := council(t, func(at *kernel.Attempt, r obj) obj {
		if only("challenge", 0, at) && at.Body.Agent == "a" {
			delete(r, "plan")
			r["support_plan"] = "sha256:" + strings.Repeat("0", 64)
		}
		return r
	}, "a", "b").rounds(2)
	m.drive()
	m.wantEnd(kernel.RunRoundLimit, "no_agreement") // an unknown hash supports nothing
}
