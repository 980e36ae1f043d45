package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// Scenario says what the server answers.
type Scenario struct {
	Models    []string `json:"models,omitempty"`     // listed by /v1/models; "scripted" when empty
	SideReply string   `json:"side_reply,omitempty"` // to requests without tools; "ok" when empty
	Scripts   []Script `json:"scripts,omitempty"`
	Otherwise []Step   `json:"otherwise,omitempty"` // when no script matches
}

// Script answers the model calls that follow a user turn which contains When:
// Steps[n] the one with n model turns after that user turn, the last step all
// later ones. The first script that matches the newest matching turn wins.
type Script struct {
	When  string `json:"when"`
	Steps []Step `json:"steps"`
}

// Step is one answer of the model.
type Step struct {
	Think  string `json:"think,omitempty"`   // reasoning, sent before the text
	Say    string `json:"say,omitempty"`     // "$candidate" and "$item" stand for what the turn block of the user's turn says
	Use    []Use  `json:"use,omitempty"`     // tool calls
	Fail   *Fail  `json:"fail,omitempty"`    // an HTTP error in place of an answer
	WaitMS int    `json:"wait_ms,omitempty"` // before the first byte
	Chunk  int    `json:"chunk,omitempty"`   // characters a streamed chunk; 20 when 0
	Cut    *int   `json:"cut,omitempty"`     // drop the connection after so many chunks
	Stall  *int   `json:"stall,omitempty"`   // send so many chunks, then nothing
	Length bool   `json:"length,omitempty"`  // finish reason "length"
	In     int    `json:"in,omitempty"`      // prompt tokens; 100 when 0
	Out    int    `json:"out,omitempty"`     // completion tokens; 10 when 0
}

// Use is a tool call: by the name the agent declared, with its arguments, or by
// what it is for (shell, read, write), which is mapped to the agent's own tool.
type Use struct {
	Name    string         `json:"name,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
	Intent  string         `json:"intent,omitempty"`
	Command string         `json:"command,omitempty"` // shell
	Path    string         `json:"path,omitempty"`    // read, write
	Content string         `json:"content,omitempty"` // write
}

// Fail is an HTTP error. Times = 0 fails for ever.
type Fail struct {
	Status     int    `json:"status"`
	Code       string `json:"code,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
	Times      int    `json:"times,omitempty"`
}

// Parse reads a scenario and refuses what it does not know, so that a typing
// error does not silently become a different test.
func Parse(b []byte) (Scenario, error) {
	var s Scenario
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	if dec.More() {
		return Scenario{}, fmt.Errorf("scenario: more than one JSON value")
	}
	for i, sc := range s.Scripts {
		if sc.When == "" || len(sc.Steps) == 0 {
			return Scenario{}, fmt.Errorf("scenario: script %d needs a text to match and at least one step", i+1)
		}
		if err := checkSteps(sc.Steps); err != nil {
			return Scenario{}, fmt.Errorf("scenario: script %q: %w", sc.When, err)
		}
	}
	if err := checkSteps(s.Otherwise); err != nil {
		return Scenario{}, fmt.Errorf("scenario: otherwise: %w", err)
	}
	return s, nil
}

func checkSteps(steps []Step) error {
	for i, st := range steps {
		if st.Fail != nil && (st.Fail.Status < 400 || st.Fail.Status > 599) {
			return fmt.Errorf("step %d: %d is not an error status", i+1, st.Fail.Status)
		}
		for _, u := range st.Use {
			if _, known := intents[u.Intent]; (u.Name == "") == (u.Intent == "") || u.Intent != "" && !known {
				return fmt.Errorf("step %d: a tool call has either a name or one of the intents shell, read, write", i+1)
			}
		}
	}
	return nil
}

// director picks steps; it holds the only state there is, the counts of
// failures with a limit.
type director struct {
	scenario Scenario
	mu       sync.Mutex
	failed   map[string]int
}

// choose returns the step for a request and a label that names it.
func (d *director) choose(r request) (Step, string) {
	if r.schema != nil {
		return Step{Say: string(mustJSON(smallest(r.schema, r.schema, 0)))}, "schema"
	}
	if len(r.tools) == 0 {
		return Step{Say: or(d.scenario.SideReply, "ok")}, "side"
	}
	steps, after, label := d.script(r.turns)
	if len(steps) == 0 {
		return Step{Say: "The script has no answer to this."}, "none"
	}
	n := min(after, len(steps)-1)
	label = fmt.Sprintf("%s[%d]", label, n)
	step := d.spent(steps[n], label)
	step.Say = fill(step.Say, r.turns)
	return step, label
}

// fill puts what the newest turn block says in place of the variables of a text.
func fill(say string, turns []turn) string {
	var b struct {
		Candidate string `json:"candidate"`
		Item      struct {
			ID string `json:"id"`
		} `json:"item"`
	}
	for i := len(turns) - 1; i >= 0; i-- {
		at := strings.LastIndex(turns[i].text, "<witan-turn>")
		if turns[i].role != "user" || at < 0 {
			continue
		}
		text, _, _ := strings.Cut(turns[i].text[at+len("<witan-turn>"):], "</witan-turn>")
		if json.Unmarshal([]byte(text), &b) == nil {
			break
		}
	}
	return strings.NewReplacer(`"$candidate"`, string(mustJSON(b.Candidate)), `"$item"`, string(mustJSON(b.Item.ID))).Replace(say)
}

func (d *director) script(turns []turn) (steps []Step, after int, label string) {
	newest := -1
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].role != "user" {
			continue
		}
		newest = max(newest, i)
		for _, s := range d.scenario.Scripts {
			if strings.Contains(turns[i].text, s.When) {
				return s.Steps, modelTurns(turns[i+1:]), s.When
			}
		}
	}
	return d.scenario.Otherwise, modelTurns(turns[newest+1:]), "otherwise"
}

// modelTurns counts model turns; neighbouring entries are one turn, because
// some agents store text and tool calls apart.
func modelTurns(turns []turn) (n int) {
	for i, t := range turns {
		if t.role == "assistant" && (i == 0 || turns[i-1].role != "assistant") {
			n++
		}
	}
	return n
}

// spent drops the failure of a step that has failed as often as it should.
func (d *director) spent(s Step, label string) Step {
	if s.Fail == nil || s.Fail.Times == 0 {
		return s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed[label] == s.Fail.Times {
		s.Fail = nil
		return s
	}
	d.failed[label]++
	return s
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// mustJSON encodes values that came from JSON or are built in this package.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
