package kernel_test

import (
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/plans"
)

// dying lets the first try of a writing turn end with effects nobody knows.
func dying(m *sim) *sim {
	m.failAttempt = func(at *kernel.Attempt) *kernel.StageEndBody {
		if m.s.SlotOf(at.ID).Write && at.Body.Try == 1 && at.Body.Round == 1 {
			m.put(kernel.DeliverySent, at.ID, "", kernel.DeliverySentBody{Agent: at.Body.Agent, Session: "new"})
			return &kernel.StageEndBody{Class: kernel.ClassExecution, Reason: "agent_died", Effects: true}
		}
		return nil
	}
	return m
}

func writing(c *kernel.CreatedBody) {
	c.Permission, c.Writable, c.MaxRounds = "full", []kernel.AgentID{"a", "b", "c"}, 3
}

func TestAWriterThatDied(t *testing.T) {
	for _, tc := range []struct {
		plan, option, end, phases, reason string
	}{
		{"batch", "retry-once", "completed", "r1(a! b c)", ""},
		{"batch", "no-retry", "partial", "r1(a! b c)", "agent_died"},
		{"council", "same-writer", "completed", "p1(a b c) c1(a b c) w1(a b) s1(c!) v1(a b)", ""},
		{"council", "next-writer", "completed", "p1(a b c) c1(a b c) w1(a b) s1(c!) s2(a!) v2(b c)", ""},
		{"council", "stop", "stopped", "p1(a b c) c1(a b c) w1(a b) s1(c!)", "stopped_by_person"},
	} {
		t.Run(tc.plan+" "+tc.option, func(t *testing.T) {
			m := newSim(t, plans.Batch{}, 3, "a", "b", "c")
			if tc.plan == "council" {
				m = council(t, nil, "a", "b", "c")
			}
			dying(m.with(writing))
			asked := 0
			m.answer = func(g *kernel.Gate) string {
				if asked++; g.Kind != kernel.GateRetry || !g.Offers(tc.option) {
					t.Errorf("gate %+v", g.GateBody)
				}
				return tc.option
			}
			m.drive()
			m.wantEnd(kernel.RunStatus(tc.end), tc.reason)
			if asked != 1 || m.phases() != tc.phases {
				t.Errorf("asked %d times, phases %s", asked, m.phases())
			}
			m.replay()
		})
	}
}

// A run at which nobody waits is parked at its gate, and goes on after answer and resume.
func TestParkedRun(t *testing.T) {
	m := dying(council(t, nil, "a", "b", "c").with(func(c *kernel.CreatedBody) { writing(c); c.OnGate = kernel.OnGateExit }))
	m.drive()
	m.wantEnd(kernel.RunWaiting, kernel.ReasonGateWaits)
	g := m.s.OpenGates()
	if len(g) != 1 {
		t.Fatalf("%d gates wait", len(g))
	}
	m.put(kernel.RunResumed, "", "", kernel.ResumedBody{By: "resume"})
	m.drive()
	m.wantEnd(kernel.RunWaiting, kernel.ReasonGateWaits) // without an answer it stays where it is
	m.put(kernel.GateDecided, g[0].Attempt, "", kernel.DecidedBody{By: "person", Gate: g[0].Gate, Option: "same-writer"})
	m.put(kernel.RunResumed, "", "", kernel.ResumedBody{By: "resume"})
	m.drive()
	m.wantEnd(kernel.RunCompleted, "")
	if n := strings.Count(strings.Join(m.log, "\n")+"\n", "\ncommit\n"); n != 1 {
		t.Errorf("%d commits", n)
	}
	m.replay()
	m.golden("council-parked")
}

func TestNobodyIsAsked(t *testing.T) {
	m := dying(newSim(t, plans.Batch{}, 3, "a", "b", "c").with(func(c *kernel.CreatedBody) { writing(c); c.OnGate = kernel.OnGateDeny }))
	m.drive()
	m.wantEnd(kernel.RunPartial, "agent_died")
	if g := m.s.Gates; len(g) != 1 || g[0].Decision.Option != "no-retry" || g[0].Decision.By != "policy" {
		t.Errorf("%+v", g)
	}
	m.replay()
}

// A stop answers what is open: nothing is allowed, nothing waits.
func TestStopClosesGates(t *testing.T) {
	m := dying(newSim(t, plans.Batch{}, 3, "a", "b", "c").with(writing))
	m.endAll()
	if len(m.s.OpenGates()) != 1 {
		t.Fatal("no gate waits")
	}
	m.put(kernel.StopRequested, "", "", kernel.StopBody{By: "person"})
	m.drive()
	m.wantEnd(kernel.RunStopped, "stopped_by_person")
	if g := m.s.Gates[0]; g.Decision == nil || g.Decision.Option != "no-retry" || m.s.Summary().Gates != 0 {
		t.Errorf("%+v", g.Decision)
	}
	m.replay()
}

// What an agent asked in a turn that is over is denied; what a dead host's turn
// asked is kept, and its answer serves the next try once.
func TestQuestionsOfDeadTurns(t *testing.T) {
	ask := func(m *sim, request string) *kernel.Attempt {
		m.settle()
		for len(m.open) > 0 && m.open[0].stage != "invoke" {
			m.end(func(openStage) bool { return true })
			m.settle()
		}
		at := m.s.Attempt(m.open[0].attempt)
		m.put(kernel.GateOpened, at.ID, "", kernel.GateBody{Gate: kernel.NewGateID("run_1", "permission", request), Kind: kernel.GatePermission,
			Options: kernel.PermissionOptions, Key: kernel.Sum([]byte("rm x")), Request: request})
		return at
	}
	q := func(request string) kernel.Question {
		return kernel.Question{Kind: kernel.GatePermission, Key: kernel.Sum([]byte("rm x")), Request: request}
	}
	m := newSim(t, plans.Direct{}, 1, "a")
	at := ask(m, "r1")
	if m.s.FindGate(at, q("r1")) == nil || m.s.FindGate(at, q("r2")) != nil {
		t.Error("a request is one gate, another one another")
	}
	m.endAll()
	m.wantEnd(kernel.RunCompleted, "")
	if d := m.s.Gates[0].Decision; d == nil || d.Option != "reject" || d.By != "turn-ended" {
		t.Errorf("%+v", d)
	}
	m.replay2(t)

	m = newSim(t, plans.Direct{}, 1, "a")
	ask(m, "r1")
	m.failAttempt = func(at *kernel.Attempt) *kernel.StageEndBody {
		return &kernel.StageEndBody{Class: kernel.ClassCancelled, Reason: "host_gone", Status: "interrupted"}
	}
	m.end(func(openStage) bool { return true })
	m.put(kernel.RunInterrupted, "", "", kernel.InterruptedBody{Reason: "host_gone"})
	m.drive()
	m.wantEnd(kernel.RunInterruptedSt, "host_gone")
	g := m.s.OpenGates()
	if len(g) != 1 {
		t.Fatalf("%d gates wait", len(g))
	}
	m.failAttempt = nil
	m.put(kernel.GateDecided, g[0].Attempt, "", kernel.DecidedBody{By: "person", Gate: g[0].Gate, Option: "allow-once"})
	m.put(kernel.RunResumed, "", "", kernel.ResumedBody{By: "resume"})
	m.settle()
	for m.open[0].stage != "invoke" {
		m.end(func(openStage) bool { return true })
		m.settle()
	}
	next := m.s.Attempt(m.open[0].attempt)
	if next.Body.Try != 2 || m.s.FindGate(next, q("other id")) != g[0] {
		t.Error("the answer does not serve the next try")
	}
	m.put(kernel.GateUsed, next.ID, "", kernel.GateUsedBody{Gate: g[0].Gate})
	if m.s.FindGate(next, q("again")) != nil {
		t.Error("the answer serves twice")
	}
	if _, ok := m.s.Granted("a", q("").Key); ok {
		t.Error("allow-once allows for the run")
	}
}

// replay2 is replay with the questions of agents, which are not decided on either.
func (m *sim) replay2(t *testing.T) {
	t.Helper()
	recs := m.recs
	s := kernel.NewState(m.s.Run)
	for i, r := range recs {
		if r.Kind == kernel.GateDecided {
			if a := kernel.Next(s, m.plan, r.At); a.Kind != kernel.GateDecided {
				t.Fatalf("record %d: decided %+v", i+1, a)
			}
		}
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBudgets(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	known := kernel.Usage{Input: n(60), Output: n(10), Cost: n(5), Complete: true}
	for _, tc := range []struct {
		name   string
		limits map[string]kernel.Limit
		usage  *kernel.Usage
		answer string
		end    kernel.RunStatus
		reason string
		phases string
	}{
		{"enough", map[string]kernel.Limit{"tokens": {Limit: 1000}, "attempts": {Limit: 50}}, &known, "", kernel.RunCompleted, "", "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)"},
		{"attempts", map[string]kernel.Limit{"attempts": {Limit: 4}}, &known, "", kernel.RunBudgetExhausted, "budget_attempts", "p1(a b c) c1(a b c)"},
		{"tokens", map[string]kernel.Limit{"tokens": {Limit: 200}}, &known, "", kernel.RunBudgetExhausted, "budget_tokens", "p1(a b c) c1(a b c)"},
		{"cost", map[string]kernel.Limit{"cost_usd_micros": {Limit: 15}}, &known, "", kernel.RunBudgetExhausted, "budget_cost_usd_micros", "p1(a b c) c1(a b c)"},
		{"soft, on", map[string]kernel.Limit{"input_tokens": {Limit: 100, Soft: true}}, &known, "continue", kernel.RunCompleted, "", "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)"},
		{"soft, stop", map[string]kernel.Limit{"input_tokens": {Limit: 100, Soft: true}}, &known, "stop", kernel.RunBudgetExhausted, "budget_input_tokens", "p1(a b c) c1(a b c)"},
		{"unknown, on", map[string]kernel.Limit{"tokens": {Limit: 100}}, nil, "continue", kernel.RunCompleted, "", "p1(a b c) c1(a b c) w1(a b) s1(c) v1(a b)"},
		{"unknown, stop", map[string]kernel.Limit{"tokens": {Limit: 100}}, nil, "stop", kernel.RunBudgetExhausted, "budget_tokens", "p1(a b c) c1(a b c)"},
		{"tools", map[string]kernel.Limit{"tool_calls": {Limit: 3}}, &known, "", kernel.RunBudgetExhausted, "budget_tool_calls", "p1(a b c) c1(a b c)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := council(t, nil, "a", "b", "c").with(func(c *kernel.CreatedBody) { c.Budget, c.MaxRounds = tc.limits, 3 })
			m.use = tc.usage
			m.answer = func(g *kernel.Gate) string {
				if g.Kind != kernel.GateBudget {
					t.Errorf("gate %s", g.Kind)
				}
				return tc.answer
			}
			m.drive()
			m.wantEnd(tc.end, tc.reason)
			if m.phases() != tc.phases {
				t.Errorf("%s", m.phases())
			}
			m.replay()
		})
	}
}

// A person who is away spends nothing of a run's time.
func TestBudgetOfTimeWhileParked(t *testing.T) {
	m := dying(council(t, nil, "a", "b", "c").with(func(c *kernel.CreatedBody) {
		writing(c)
		c.OnGate = kernel.OnGateExit
		c.Budget = map[string]kernel.Limit{"elapsed": {Limit: 600_000}}
	}))
	m.endAll()
	m.wantEnd(kernel.RunWaiting, kernel.ReasonGateWaits)
	m.now = m.now.Add(time.Hour)
	g := m.s.OpenGates()[0]
	m.put(kernel.GateDecided, g.Attempt, "", kernel.DecidedBody{By: "person", Gate: g.Gate, Option: "same-writer"})
	m.put(kernel.RunResumed, "", "", kernel.ResumedBody{By: "resume"})
	m.endAll()
	m.wantEnd(kernel.RunCompleted, "")
	m.replay()
}

func TestBudgetOfTime(t *testing.T) {
	m := newSim(t, plans.Direct{}, 1, "a").with(func(c *kernel.CreatedBody) {
		c.Budget = map[string]kernel.Limit{"elapsed": {Limit: 60_000}}
	})
	m.settle()
	for m.open[0].stage != "invoke" {
		m.end(func(openStage) bool { return true })
		m.settle()
	}
	if a := m.settle(); !a.WaitUntil.Equal(m.now.Add(time.Minute)) {
		t.Fatalf("%+v", a)
	}
	m.now = m.now.Add(time.Minute)
	m.settle()
	if m.s.Tripped == nil {
		t.Fatal("the budget is not tripped")
	}
	m.failAttempt = func(*kernel.Attempt) *kernel.StageEndBody {
		return &kernel.StageEndBody{Class: kernel.ClassBudget, Reason: "budget_exhausted", Status: "stopped"}
	}
	m.drive()
	m.wantEnd(kernel.RunBudgetExhausted, "budget_elapsed")
	m.replay()
}
