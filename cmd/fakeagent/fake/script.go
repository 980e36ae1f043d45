// Package fake is a scripted agent that speaks ACP on stdin and stdout. It
// does what a JSON script says, good and bad, so that tests need no real agent.
//
//	fakeagent SCRIPT.json
//
// A script is {"log": FILE, "load": bool, "rules": [{"match": TEXT, "steps": […]}], "steps": […]}.
// A prompt is answered by the first rule whose match it contains, else by steps.
// Each prompt is appended to log as one JSON line {"session", "prompt", "pid"}.
// A step is an object with one of these keys:
//
//	"text": TEXT            a chunk of the answer
//	"bytes": N              the answer in single bytes of TEXT under "of"
//	"thought": TEXT         a thought chunk
//	"tool": {"id","kind","title","status"}   a tool call or its update
//	"permission": {"kind","title","path","options":[{"optionId","kind","name"}],"id"}  asks; the answer becomes text
//	"write": {"path","by": "self"|"child"|"setsid"}  tries to write; the result becomes text
//	"tree": N               starts N descendants in sessions of their own, deaf to signals; their pids become text,
//	                        and lines of the file under "pids", if there is one
//	"flood": N              N text chunks
//	"usage": {…}            the usage of the turn
//	"receipt": {…}          a receipt at the end of the text
//	"echo": true            the turn block as text
//	"raw": TEXT             as it is on stdout; "stderr": TEXT likewise
//	"line": N               a tool update whose line has N bytes
//	"request": METHOD       an unknown request; "notify": METHOD an unknown notification
//	"wait_file": FILE       waits until FILE exists; "touch": FILE makes it
//	"hang": true            nothing more, for ever; "heartbeat": true the same with usage updates
//	"deaf": true            from here on cancel and SIGTERM are ignored
//	"error": {"code","message"}  the prompt fails with it
//	"stop": REASON          the turn ends with this reason instead of end_turn
//	"exit": N               the process exits; "crash": true it kills itself
//	"late": true            the turn is answered twice
package fake

import (
	"encoding/json"
	"os"
	"strings"
)

type script struct {
	Log     string `json:"log"`
	Load    bool   `json:"load"`
	NoInit  bool   `json:"no_init"` // never answers initialize
	Banner  string `json:"banner"`  // printed before anything else
	Version int    `json:"version"` // of the protocol; 0 = 1
	Auth    bool   `json:"auth"`    // session/new asks for a sign-in
	Rules   []struct {
		Match string `json:"match"`
		Steps []step `json:"steps"`
	} `json:"rules"`
	Steps []step `json:"steps"`
}

type step struct {
	Text       *string         `json:"text"`
	Bytes      string          `json:"of"`
	N          int             `json:"bytes"`
	Thought    string          `json:"thought"`
	Tool       json.RawMessage `json:"tool"`
	Permission *permission     `json:"permission"`
	Write      *write          `json:"write"`
	Tree       int             `json:"tree"`
	PIDs       string          `json:"pids"`
	Flood      int             `json:"flood"`
	Usage      json.RawMessage `json:"usage"`
	Receipt    json.RawMessage `json:"receipt"`
	Echo       bool            `json:"echo"`
	Raw        *string         `json:"raw"`
	Stderr     string          `json:"stderr"`
	Line       int             `json:"line"`
	Request    string          `json:"request"`
	Notify     string          `json:"notify"`
	WaitFile   string          `json:"wait_file"`
	Touch      string          `json:"touch"`
	Hang       bool            `json:"hang"`
	Heartbeat  bool            `json:"heartbeat"`
	Deaf       bool            `json:"deaf"`
	Error      json.RawMessage `json:"error"`
	Stop       string          `json:"stop"`
	Exit       *int            `json:"exit"`
	Crash      bool            `json:"crash"`
	Late       bool            `json:"late"`
}

type permission struct {
	Kind    string          `json:"kind"`
	Title   string          `json:"title"`
	Path    string          `json:"path"`
	ID      string          `json:"id"`
	Options json.RawMessage `json:"options"`
}

type write struct {
	Path string `json:"path"`
	By   string `json:"by"`
}

func load(path string) (script, error) {
	var s script
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	return s, dec.Decode(&s)
}

func (s script) stepsFor(prompt string) []step {
	for _, r := range s.Rules {
		if strings.Contains(prompt, r.Match) {
			return r.Steps
		}
	}
	return s.Steps
}
