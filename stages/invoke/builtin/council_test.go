package builtin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/plans"
	"witan/kernel/receipts"
	"witan/stages/invoke/builtin"
)

const runID = "run_01"

var snapshot = kernel.Sum([]byte("snapshot"))

// council asks built-in agents for turns over ACP, as a host does.
type council struct {
	t       *testing.T
	dir     string // workspace
	turns   string // folders of the run's turns
	members []kernel.AgentID
	n       int
}

func newCouncil(r *repo, members ...kernel.AgentID) *council {
	return &council{t: r.t, dir: r.dir, turns: filepath.Join(r.t.TempDir(), runID), members: members}
}

// said is an answer: its text without the receipt, the receipt, and outcomes.
type said struct {
	text     string
	raw      json.RawMessage
	findings []kernel.Outcome
	evidence map[kernel.OutcomeID]bool

	Summary      string   `json:"summary"`
	Capabilities []string `json:"capabilities"`
	IntendedWork []string `json:"intended_work"`
	Deliverables []string `json:"deliverables"`
	Verdict      string   `json:"verdict"`
	Item         string   `json:"item"`
	Candidate    string   `json:"candidate"`
	Resolved     []string `json:"resolved"`
	Artifacts    []string `json:"artifacts"`
	SupportPlan  string   `json:"support_plan"`

	Plan     *plans.WorkPlan    `json:"plan"`
	Claims   []kernel.ClaimText `json:"claims"`
	Findings []struct {
		Severity, Stance, Title, Detail, Path string
		Line                                  int
	} `json:"findings"`
	Decision struct {
		Status       string   `json:"status"`
		Deliverables []string `json:"deliverables"`
	} `json:"decision"`
}

// ask sends one turn and checks what holds of every answer: one receipt at its
// end that strict reading takes, and nothing but text before it.
func (c *council) ask(id kernel.AgentID, phase string, round int, prose string, extra map[string]any, opts ...builtin.Option) said {
	c.t.Helper()
	c.n++
	block := map[string]any{"version": 1, "run": runID, "phase": phase, "round": round, "agent": id, "role": "member", "write": false,
		"members": c.members, "snapshot": snapshot}
	maps.Copy(block, extra)
	raw, err := kernel.Canonical(block)
	if err != nil {
		c.t.Fatal(err)
	}
	cl := connect(c.t, c.t.Context(), agent(c.t, id, opts...))
	ses := cl.open(c.dir, filepath.Join(c.turns, fmt.Sprintf("%s-%d-%d", phase, round, c.n)))
	text := marker.Neutralise(prose) + "\n" + marker.TurnOpen + "\n" + strings.ReplaceAll(string(raw), "<", `\u003c`) + "\n" + marker.TurnClose + "\n"
	cl.send(prompt("p", ses, text))
	if m := cl.until(`"p"`); string(m.Result) != `{"stopReason":"end_turn"}` {
		c.t.Fatalf("%s %s ended with %s %+v", id, phase, m.Result, m.Error)
	}
	answer := cl.text()
	s := said{text: marker.Visible(answer), evidence: map[kernel.OutcomeID]bool{}}
	inner, ok := marker.Receipt(answer)
	if !ok || strings.Contains(s.text, "<witan-") || strings.TrimSpace(s.text) == "" {
		c.t.Fatalf("%s %s: the receipt is not the only marker in %q", id, phase, answer)
	}
	ex, err := json.Marshal(extra)
	if err != nil {
		c.t.Fatal(err)
	}
	exp := receipts.ExpectOf(kernel.Turn{Phase: phase, Round: round, Snapshot: snapshot, Extra: ex})
	if s.raw, _, err = receipts.Parse([]byte(inner), exp, true); err != nil {
		c.t.Fatalf("%s %s: %v in %s", id, phase, err, inner)
	}
	if err := json.Unmarshal(s.raw, &s); err != nil {
		c.t.Fatal(err)
	}
	for _, m := range cl.seen {
		switch o := m.Params.Outcome; o.Type {
		case "evidence":
			s.evidence[o.ID] = true
		case "finding":
			s.findings = append(s.findings, o)
			if o.Agent != id || len(o.Evidence) == 0 || !s.evidence[o.Evidence[0]] {
				c.t.Errorf("%s %s: finding %+v without evidence of its own", id, phase, o)
			}
		}
	}
	return s
}

// quote is how a prompt quotes an answer.
func quote(id kernel.AgentID, phase, item, text string) string {
	who := fmt.Sprintf("%s, %s 1", id, phase)
	if item != "" {
		who += ", item " + item
	}
	return "[" + who + "]\n> " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> ") + "\n"
}

// faulty is a project with one fault of each kind that can be mended.
func faulty(t *testing.T) *repo {
	return newRepo(t, map[string]string{
		"go.mod":    "module demo\n\ngo 1.21\n",
		"README.md": "# Demo\n\nSee the [guide](doc/Guide.md#start).\n",
		// The right place of the guide, and a file that a test reads.
		"docs/guide.md":        "# Guide\n\n## Start\n\nGo.\n",
		"testdata/config.json": "{\n  \"name\": \"demo\",\n}\n",
		"config.go":            "package demo\n\n// Name is here.\nfunc Name( ) string {\nreturn \"demo\"\n}\n",
		"config_test.go": "package demo\n\nimport (\n\t\"encoding/json\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestConfig(t *testing.T) {\n" +
			"\tb, err := os.ReadFile(\"testdata/config.json\")\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tvar v map[string]string\n" +
			"\tif err := json.Unmarshal(b, &v); err != nil {\n\t\tt.Fatalf(\"testdata/config.json: %v\", err)\n\t}\n" +
			"\tif v[\"name\"] != Name() {\n\t\tt.Fatal(\"another name\")\n\t}\n}\n",
	})
}

// items are those of a role, by owner.
func items(p *plans.WorkPlan, role string) map[kernel.AgentID]plans.Item {
	out := map[kernel.AgentID]plans.Item{}
	for _, it := range p.Items {
		if it.Role == role {
			out[it.Owner] = it
		}
	}
	return out
}

// A council of the three agents mends what is mechanically wrong, and a second
// one finds nothing to do.
func TestCouncilMends(t *testing.T) {
	r := faulty(t)
	r.commit()
	three := []kernel.AgentID{"scout", "inspector", "runner"}
	c := newCouncil(r, three...)
	before := r.state()
	proposals := map[kernel.AgentID]said{}
	for _, id := range three {
		proposals[id] = c.ask(id, "proposal", 1, "Find and fix what is wrong", nil)
	}
	if w := strings.Join(proposals["inspector"].IntendedWork, "\n"); !strings.Contains(w, "README.md:3") || !strings.Contains(w, "config.go:4") {
		t.Errorf("the inspector intends %q", w)
	}
	if w := strings.Join(proposals["runner"].IntendedWork, "\n"); !strings.Contains(w, "config_test.go:") {
		t.Errorf("the runner intends %q", w)
	}
	review := map[kernel.AgentID]kernel.AgentID{"scout": "runner", "runner": "inspector", "inspector": "scout"}
	inputs := []string{"msg_2", "msg_1"}
	var plan *plans.WorkPlan
	for _, id := range three {
		s := c.ask(id, "challenge", 1, quote(review[id], "proposal", "", proposals[review[id]].text), map[string]any{"review_of": review[id], "inputs": inputs})
		if s.Verdict != "support" || s.Plan == nil {
			t.Fatalf("%s answers %s", id, s.raw)
		}
		n, err := s.Plan.Normalise(snapshot, three, inputs)
		if err != nil {
			t.Fatalf("the plan of %s: %v", id, err)
		}
		if plan != nil && plan.Hash != n.Hash {
			t.Fatalf("%s puts forward another plan", id)
		}
		plan = &n
	}
	if plan.Finalizer != "inspector" {
		t.Errorf("finalizer %s", plan.Finalizer)
	}
	told := ""
	for id, it := range items(plan, "worker") {
		s := c.ask(id, "work", 1, "", map[string]any{"item": it})
		if s.Item != it.ID || s.Summary == "" {
			t.Errorf("%s reports %s", id, s.raw)
		}
		told += quote(id, "work", it.ID, s.text)
	}
	if r.state() != before {
		t.Fatal("something was written before the synthesis")
	}
	dry := c.ask("inspector", "synthesis", 1, told, map[string]any{"write": false})
	if r.state() != before || len(dry.Artifacts) > 0 || !strings.Contains(dry.text, "README.md:3") {
		t.Errorf("a read-only synthesis: %s\n%s", dry.raw, dry.text)
	}
	s := c.ask("inspector", "synthesis", 1, told, map[string]any{"write": true})
	if want := []string{"README.md", "config.go", "testdata/config.json"}; !slices.Equal(s.Artifacts, want) {
		t.Errorf("changed %v", s.Artifacts)
	}
	for _, want := range []string{"`README.md:3`", "`config.go:4`", "`testdata/config.json:2`", "runner: Tests.", "scout: Workspace map."} {
		if !strings.Contains(s.text, want) {
			t.Errorf("the result does not tell of %s:\n%s", want, s.text)
		}
	}
	if got := r.read("README.md"); got != "# Demo\n\nSee the [guide](docs/guide.md#start).\n" {
		t.Errorf("README.md is %q", got)
	}
	candidate := kernel.Sum([]byte("candidate")).String()
	for _, id := range []kernel.AgentID{"scout", "runner"} {
		s := c.ask(id, "verification", 1, "", map[string]any{"candidate": candidate})
		if s.Verdict != "support" || s.Candidate != candidate || len(s.Findings) > 0 {
			t.Errorf("%s says %s", id, s.raw)
		}
	}

	r.run("runner") // the tests pass now
	after := r.state()
	c = newCouncil(r, three...)
	if s := c.ask("inspector", "proposal", 1, "", nil); !strings.Contains(strings.Join(s.IntendedWork, ""), "Nothing to do was found") {
		t.Errorf("a second run intends %v", s.IntendedWork)
	}
	s = c.ask("inspector", "synthesis", 1, "", map[string]any{"write": true})
	if r.state() != after || len(s.Artifacts) > 0 || !strings.HasPrefix(s.Summary, "Nothing to do") || !strings.Contains(s.text, "Nothing to do") {
		t.Errorf("a second run: %s\n%s", s.raw, s.text)
	}
}

// The finalizer addresses the issues that its changes are about, and no other.
func TestSynthesisResolves(t *testing.T) {
	r := faulty(t)
	c := newCouncil(r, "inspector", "runner")
	c.ask("inspector", "synthesis", 1, "", map[string]any{"write": true})
	if !strings.Contains(r.read("testdata/config.json"), "\",\n}") {
		t.Fatal("an example of the tests was changed that nobody blamed")
	}
	s := c.ask("runner", "verification", 1, "", map[string]any{"candidate": "x"})
	if s.Verdict != "contradict" || len(s.Findings) != 1 || s.Findings[0].Path != "config_test.go" || s.Findings[0].Stance != "contradict" {
		t.Fatalf("the runner says %s", s.raw)
	}
	s = c.ask("inspector", "synthesis", 2, quote("runner", "verification", "", s.text), map[string]any{"write": true, "issues": []any{
		map[string]any{"id": "I1", "summary": "runner: " + s.Findings[0].Title}, map[string]any{"id": "I2", "summary": "alpha: the words are wrong"}}})
	if !slices.Equal(s.Resolved, []string{"I1"}) || !slices.Equal(s.Artifacts, []string{"testdata/config.json"}) {
		t.Errorf("resolved %v with %v", s.Resolved, s.Artifacts)
	}
	if !strings.Contains(s.text, "I2 (alpha: the words are wrong): open") {
		t.Errorf("the open issue is not told:\n%s", s.text)
	}
	// Nothing is left to change: nothing is addressed any more.
	s = c.ask("inspector", "synthesis", 3, "", map[string]any{"write": true, "issues": []any{map[string]any{"id": "I2", "summary": "alpha: the words are wrong"}}})
	if len(s.Resolved) > 0 || len(s.Artifacts) > 0 || strings.HasPrefix(s.Summary, "Nothing to do") {
		t.Errorf("%s", s.raw)
	}
}

// Only a high finding that was not there before contradicts a candidate.
func TestVerificationTellsNewFromOld(t *testing.T) {
	conflict := "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"
	files := map[string]string{"old.txt": conflict, "a.txt": "a\n"}
	for _, tt := range []struct {
		name    string
		members []kernel.AgentID // which of them looks before the work
		id      kernel.AgentID
	}{
		{"scout alone", []kernel.AgentID{"alpha", "scout"}, "scout"},
		{"scout after the inspector", []kernel.AgentID{"inspector", "scout"}, "scout"},
		{"inspector", []kernel.AgentID{"alpha", "inspector"}, "inspector"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRepo(t, files)
			c := newCouncil(r, tt.members...)
			ask := func() said { return c.ask(tt.id, "verification", 1, "", map[string]any{"candidate": "c"}) }
			if s := ask(); s.Verdict != "contradict" || !strings.Contains(s.text, "not known") {
				t.Errorf("with nothing to compare: %s\n%s", s.raw, s.text)
			}
			for _, m := range tt.members {
				if m != "alpha" {
					c.ask(m, "proposal", 1, "", nil)
				}
			}
			if s := ask(); s.Verdict != "support" || !strings.Contains(s.text, "none of them new") || len(s.findings) != 1 {
				t.Errorf("unchanged: %s, %d findings\n%s", s.raw, len(s.findings), s.text)
			}
			r.write("old.txt", "moved down\n\n"+conflict)
			if s := ask(); s.Verdict != "support" {
				t.Errorf("old fault on another line: %s", s.raw)
			}
			r.write("new.txt", conflict)
			if s := ask(); s.Verdict != "contradict" || len(s.Findings) != 1 || s.Findings[0].Path != "new.txt" || s.Findings[0].Line != 1 {
				t.Errorf("new fault: %s", s.raw)
			}
		})
	}
}

// A failing test contradicts whatever was changed, and not what was left alone.
func TestVerificationRunsTests(t *testing.T) {
	r := faulty(t)
	c := newCouncil(r, "alpha", "runner")
	c.ask("runner", "proposal", 1, "", nil)
	if s := c.ask("runner", "verification", 1, "", map[string]any{"candidate": "c"}); s.Verdict != "support" || !strings.Contains(s.text, "none of them new") || len(s.findings) != 1 {
		t.Errorf("unchanged: %s\n%s", s.raw, s.text)
	}
	r.write("README.md", "# Demo\n")
	if s := c.ask("runner", "verification", 1, "", map[string]any{"candidate": "c"}); s.Verdict != "contradict" || len(s.Claims) != 1 || *s.Claims[0].Exit != 1 {
		t.Errorf("changed: %s", s.raw)
	}
	r.write("testdata/config.json", "{\"name\": \"demo\"}\n")
	if s := c.ask("runner", "verification", 2, "", map[string]any{"candidate": "c"}); s.Verdict != "support" || len(s.Claims) != 1 || *s.Claims[0].Exit != 0 {
		t.Errorf("mended: %s", s.raw)
	}
	// Tests that do not end say nothing, and nothing is claimed of them.
	r.write("slow_test.go", "package demo\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestSlow(t *testing.T) {\n\tr, w, err := os.Pipe()\n\tif err == nil {\n\t\tr.Read(make([]byte, 1))\n\t\tw.Close()\n\t}\n}\n")
	s := c.ask("runner", "verification", 3, "", map[string]any{"candidate": "c"}, builtin.TestLimit(2*time.Second))
	if s.Verdict != "support" || len(s.Claims) != 0 || !strings.Contains(s.text, "no test has ended") || !strings.Contains(s.text, "says nothing about the tests") {
		t.Errorf("unfinished: %s\n%s", s.raw, s.text)
	}
	if _, err := os.Stat(filepath.Join(c.turns, "before-tests.json")); err != nil {
		t.Error(err)
	}
}

// A discussion ends: peers go on, the owner completes it in its second round.
func TestDiscuss(t *testing.T) {
	r := newRepo(t, map[string]string{"README.md": "[x](gone.md)\n"})
	before := r.state()
	c := newCouncil(r, "inspector", "scout")
	told := ""
	for _, tt := range []struct {
		id     kernel.AgentID
		role   string
		round  int
		status string
	}{{"inspector", "owner", 1, "continue"}, {"scout", "member", 1, "continue"}, {"scout", "member", 2, "continue"}, {"inspector", "owner", 2, "completed"}, {"inspector", "member", 3, "completed"}} {
		s := c.ask(tt.id, "discuss", tt.round, told, map[string]any{"role": tt.role, "write": true})
		told += quote(tt.id, "discuss", "", s.text)
		if s.Decision.Status != tt.status || tt.status == "completed" && !strings.Contains(strings.Join(s.Decision.Deliverables, "\n"), "README.md:1") {
			t.Errorf("%+v: %s", tt, s.raw)
		}
		if tt.round == 2 && tt.id == "inspector" && !strings.Contains(s.text, "scout: Workspace map.") {
			t.Errorf("the owner does not tell of the others:\n%s", s.text)
		}
	}
	if r.state() != before {
		t.Error("a discussion wrote something")
	}
}
