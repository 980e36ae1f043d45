// Package fake is a scripted agent for tests that need no real one. It speaks ACP
// on stdin and stdout, or plain text, and does what a JSON script says, good and bad.
//
//	fakeagent SCRIPT.json
//	fakeagent --text SCRIPT.json [PROMPT]
//	fakeagent --claude|--codex|--gemini|--opencode|--qwen SCRIPT.json FLAGS
//
// With --text the prompt is PROMPT or else the whole of stdin, and the answer is
// what is printed; steps that have no meaning there do nothing.
//
// With --claude it speaks the duplex stream of Claude Code and takes its flags,
// which the log shows too: "session" is what they name, a permission has the
// options of its kinds only, and "usage" is as that program writes it. The same
// holds for --codex, --gemini, --opencode and --qwen, which are Codex CLI, Gemini
// CLI, OpenCode and Qwen Code: they take the prompt as their whole input, end after
// the answer, ask nothing, and a signal to end is their cancel. What --codex and
// --opencode say without a break is one message.
//
// A script is an object:
//
//	"rules": [{"match": TEXT, "phase": PHASE, "round": N, "once": FILE, "steps": […]}], "steps": […]
//	                        a prompt is answered by the first rule whose match it contains and whose phase and round
//	                        the turn block has, else by steps; one with "once" only while FILE does not exist, which it makes
//	"name": TEXT            what the agent calls itself
//	"log": FILE             each prompt is appended as one JSON line {"session", "prompt", "pid"}
//	"log_env": [NAME, …]    the log shows these variables under "env"
//	"load": true            sessions can be loaded; one with "gone" in its id cannot. "replay": TEXT is what
//	                        a loaded session says again
//	"modes": {…}            modes that session/new offers
//	"banner": TEXT          printed before anything else
//	"no_init": true         initialize is never answered; "version": N the version it is answered with
//	"auth": true            session/new wants a sign-in
//	"bare": true            a program for one prompt prints only what its steps say, to play recorded streams
//	"blind": true           nothing is read any more once a session is open; with --text, nothing at all
//
// A step is an object with one of these keys:
//
//	"text": TEXT            a chunk of the answer
//	"bytes": N              a chunk in single bytes of the text under "of"
//	"thought": TEXT         a thought chunk
//	"tool": {"id","kind","title","status"}   a tool call or its update;
//	                        "$session" in it is the session
//	"permission": {"kind","title","path","command","options":[{"optionId","kind","name"}],"id","call"}
//	                        asks; the answer becomes text. "then": {OPTION: […], "cancelled": […]} are steps
//	                        that follow the answer. "id" and "call" repeat those of another request
//	"permissions": [{…}, …] asks all of them at once
//	"write": {"path","by": "self"|"child"|"setsid"}  tries to write; the result becomes text
//	"save": {"path","text"} asks the client to write a file; "open": PATH asks it to read one. The result becomes text
//	"tree": N               starts N descendants in sessions of their own, deaf to signals; their pids become text,
//	                        and lines of the file under "pids", if there is one. "hold": true: each holds the
//	                        working directory and a TCP port, which becomes text
//	"flood": N              N text chunks
//	"usage": {…}            the usage of the turn
//	"receipt": {…}          a receipt at the end of the text. In it "$candidate", "$item", "$plan" (the first of the
//	                        plans) and "$issues" (a list) stand for what the turn block says
//	"mcp": {"tool": NAME, "arguments": {…}, "server": NAME}
//	                        calls a tool of the MCP server that the client offered under that name, or of the first one,
//	                        and says the result as text. The server is started by the first such step of a session and
//	                        kept; the variables of "receipt" stand for the same in the arguments
//	"echo": true            the turn block as text
//	"raw": TEXT             as it is on stdout; "raw64": BASE64 likewise, any bytes
//	"stderr": TEXT          as it is on stderr; "stderr64": BASE64 likewise, byte by byte
//	"line": N               a tool update whose line has N bytes
//	"request": METHOD       an unknown request; "notify": METHOD an unknown notification
//	"wait_file": FILE       waits until FILE exists; "touch": FILE makes it
//	"delay_ms": N           waits; prefer wait_file
//	"until_cancel": true    waits until the client cancels, and goes on
//	"hang": true            nothing more, for ever; "heartbeat": true the same with usage updates, every "every_ms"
//	"deaf": true            from here on cancel and signals are ignored; "ignore_cancel", "ignore_sigterm" one of them
//	"error": {"code","message"}  the prompt fails with it
//	"stop": REASON          the turn ends with this reason instead of end_turn
//	"exit": N               the process exits; "crash": true it kills itself
//	"late": true            the turn is answered twice
//	"unanswered": true      the turn is never answered
package fake

import (
	"encoding/json"
	"os"
	"strings"
)

type script struct {
	Name    string          `json:"name"`
	Log     string          `json:"log"`
	LogEnv  []string        `json:"log_env"` // variables that the log shows
	Load    bool            `json:"load"`
	Replay  string          `json:"replay"`
	Modes   json.RawMessage `json:"modes"`
	Blind   bool            `json:"blind"`
	NoInit  bool            `json:"no_init"` // never answers initialize
	Banner  string          `json:"banner"`  // printed before anything else
	Version int             `json:"version"` // of the protocol; 0 = 1
	Auth    bool            `json:"auth"`    // session/new asks for a sign-in
	Bare    bool            `json:"bare"`    // prints only what the steps say
	Rules   []struct {
		Match string `json:"match"`
		Phase string `json:"phase"`
		Round int    `json:"round"`
		Once  string `json:"once"`
		Steps []step `json:"steps"`
	} `json:"rules"`
	Steps []step `json:"steps"`
}

type step struct {
	Text        *string         `json:"text"`
	Bytes       string          `json:"of"`
	N           int             `json:"bytes"`
	Thought     string          `json:"thought"`
	Tool        json.RawMessage `json:"tool"`
	Permission  *permission     `json:"permission"`
	Permissions []permission    `json:"permissions"`
	Write       *write          `json:"write"`
	Tree        int             `json:"tree"`
	PIDs        string          `json:"pids"`
	Hold        bool            `json:"hold"`
	Save        *save           `json:"save"`
	Open        string          `json:"open"`
	Flood       int             `json:"flood"`
	Usage       json.RawMessage `json:"usage"`
	Receipt     json.RawMessage `json:"receipt"`
	MCP         *mcpCall        `json:"mcp"`
	Echo        bool            `json:"echo"`
	Raw         *string         `json:"raw"`
	Raw64       []byte          `json:"raw64"`
	Stderr      string          `json:"stderr"`
	Stderr64    []byte          `json:"stderr64"`
	Line        int             `json:"line"`
	Request     string          `json:"request"`
	Notify      string          `json:"notify"`
	WaitFile    string          `json:"wait_file"`
	Touch       string          `json:"touch"`
	DelayMS     int             `json:"delay_ms"`
	Cancel      bool            `json:"until_cancel"`
	Hang        bool            `json:"hang"`
	Heartbeat   bool            `json:"heartbeat"`
	EveryMS     int             `json:"every_ms"`
	Deaf        bool            `json:"deaf"`
	NoCancel    bool            `json:"ignore_cancel"`
	NoTerm      bool            `json:"ignore_sigterm"`
	Error       json.RawMessage `json:"error"`
	Stop        string          `json:"stop"`
	Exit        *int            `json:"exit"`
	Crash       bool            `json:"crash"`
	Late        bool            `json:"late"`
	Unanswered  bool            `json:"unanswered"`
}

type permission struct {
	Kind    string            `json:"kind"`
	Title   string            `json:"title"`
	Path    string            `json:"path"`
	Command string            `json:"command"`
	ID      string            `json:"id"`
	Call    string            `json:"call"`
	Options json.RawMessage   `json:"options"`
	Then    map[string][]step `json:"then"`
}

type save struct {
	Path string `json:"path"`
	Text string `json:"text"`
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
	b := blockOf(prompt)
	for _, r := range s.Rules {
		if !strings.Contains(prompt, r.Match) || r.Phase != "" && r.Phase != b.Phase || r.Round > 0 && r.Round != b.Round {
			continue
		}
		if r.Once != "" {
			f, err := os.OpenFile(r.Once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				continue
			}
			_ = f.Close()
		}
		return r.Steps
	}
	return s.Steps
}

// block is what a script can use of the turn block.
type block struct {
	Phase     string `json:"phase"`
	Round     int    `json:"round"`
	Candidate string `json:"candidate"`
	Item      struct {
		ID string `json:"id"`
	} `json:"item"`
	Plans []struct {
		Hash string `json:"hash"`
	} `json:"plans"`
	Issues []struct {
		ID string `json:"id"`
	} `json:"issues"`
}

func blockOf(prompt string) (b block) {
	if i := strings.LastIndex(prompt, "<witan-turn>"); i >= 0 {
		text, _, _ := strings.Cut(prompt[i+len("<witan-turn>"):], "</witan-turn>")
		_ = json.Unmarshal([]byte(text), &b)
	}
	return b
}

// fill puts what the turn block says in place of the variables of a receipt.
func (b block) fill(receipt string) string {
	issues := []string{}
	for _, i := range b.Issues {
		issues = append(issues, i.ID)
	}
	list, _ := json.Marshal(issues)
	plan := ""
	if len(b.Plans) > 0 {
		plan = b.Plans[0].Hash
	}
	quote := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	return strings.NewReplacer(`"$candidate"`, quote(b.Candidate), `"$item"`, quote(b.Item.ID), `"$plan"`, quote(plan), `"$issues"`, string(list)).Replace(receipt)
}
