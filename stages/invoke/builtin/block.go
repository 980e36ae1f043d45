package builtin

import (
	"encoding/json"
	"regexp"
	"strings"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/plans"
)

// block is what the agents read of a turn block. What it does not hold is empty.
type block struct {
	Run       string            `json:"run"`
	Phase     string            `json:"phase"`
	Round     int               `json:"round"`
	Agent     kernel.AgentID    `json:"agent"`
	Role      string            `json:"role"`
	Write     bool              `json:"write"`
	Members   []kernel.AgentID  `json:"members"`
	Snapshot  string            `json:"snapshot"`
	ReviewOf  kernel.AgentID    `json:"review_of"`
	Plans     []json.RawMessage `json:"plans"`
	Inputs    []string          `json:"inputs"`
	Item      plans.Item        `json:"item"`
	Candidate string            `json:"candidate"`
	Issues    []openIssue       `json:"issues"`
}

// openIssue keeps a candidate from being accepted.
type openIssue struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

// readBlock cuts a prompt into what is written for a model and the turn block
// that ends it, empty if there is none.
func readBlock(prompt string) (b block, prose string) {
	i := strings.LastIndex(prompt, marker.TurnOpen)
	if i < 0 {
		return block{}, prompt
	}
	raw, _, _ := strings.Cut(prompt[i+len(marker.TurnOpen):], marker.TurnClose)
	if json.Unmarshal([]byte(raw), &b) != nil {
		return block{}, prompt
	}
	return b, prompt[:i]
}

// word is what a member said earlier in the run.
type word struct {
	agent kernel.AgentID
	phase string
	text  string
}

// sayer is the line above a quotation. In one every line begins with a sign of
// its own, so no text can hold this line.
var sayer = regexp.MustCompile(`^\[([^\],\s]+), ([a-z]+) \d+(?:, item .*)?\]$`)

// quoted reads what the prompt quotes of this run, in its order.
func quoted(prose string) []word {
	var all []word
	open := false
	for l := range strings.Lines(prose) {
		l = strings.TrimRight(l, "\r\n")
		if m := sayer.FindStringSubmatch(l); m != nil {
			all = append(all, word{agent: kernel.AgentID(m[1]), phase: m[2]})
			open = true
			continue
		}
		line, ok := strings.CutPrefix(l, "> ")
		if open = open && (ok || l == ">"); open {
			all[len(all)-1].text += line + "\n"
		}
	}
	return all
}
