package gemini

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// Programs that speak the protocol.
const (
	Gemini = "gemini"
	Qwen   = "qwen"
)

// Config of New.
type Config struct {
	ID        kernel.AgentID
	Program   string // Gemini or Qwen; "" = Qwen if the command says so
	Spec      func(turn.Place) (proc.Spec, error)
	Sessions  stream.Sessions
	Model     string // "" = the agent's own choice
	Watchdog  turn.Watchdog
	LineBytes int       // of one value; 0 = 16 MiB
	Hide      turn.Hide // texts that must not get out of the host
}

// New returns the adapter of one agent.
func New(c Config) *stream.Agent {
	o := opener{program: c.Program, model: c.Model, count: &counter{seen: map[string]counts{}}}
	return stream.New(stream.Config{ID: c.ID, Spec: c.Spec, Sessions: c.Sessions, Watchdog: c.Watchdog, LineBytes: c.LineBytes, Hide: c.Hide, Open: o.open, NewSession: newID})
}

type opener struct {
	program, model string
	count          *counter
}

// open completes the command of a turn. Both programs read the prompt from their
// input.
func (o opener) open(t *stream.Turn, s *proc.Spec) (stream.Reader, []byte, error) {
	program := o.program
	if program == "" {
		program = programOf(*s)
	}
	s.Args = append(s.Args, "-o", "stream-json", "--approval-mode", approval(t.Req.Turn.Write))
	if program == Qwen {
		s.Args = append(s.Args, "--include-partial-messages")
	}
	if o.model != "" {
		s.Args = append(s.Args, "--model", o.model)
	}
	if t.Resume != "" {
		s.Args = append(s.Args, "--resume", t.Resume)
	} else {
		s.Args = append(s.Args, "--session-id", t.New)
	}
	// In front: what the configuration says counts.
	s.Env = append([]string{"GEMINI_CLI_TRUST_WORKSPACE=true"}, s.Env...)
	if len(t.Req.MCP) > 0 && program == Qwen { // Gemini CLI takes them from the person's settings only
		if err := offer(t, s); err != nil {
			return nil, nil, err
		}
	}
	return &reader{t: t, count: o.count}, t.Req.Prompt, nil
}

// programOf guesses the program by its command.
func programOf(s proc.Spec) string {
	for _, word := range append([]string{filepath.Base(s.Path)}, s.Args...) {
		if strings.Contains(strings.ToLower(word), Qwen) {
			return Qwen
		}
	}
	return Gemini
}

// approval is the mode of a turn. Without a person at the terminal "default" has
// no tools that write or run something, and only "yolo" has all: what a writer
// may touch is for the system to hold.
func approval(write bool) string {
	if write {
		return "yolo"
	}
	return "default"
}

// offer hands over the turn's tool servers, in a file: what they are given may be
// secret, and arguments are not.
func offer(t *stream.Turn, s *proc.Spec) error {
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		Trust   bool              `json:"trust"` // no question before each call
	}
	all := map[string]server{}
	for _, m := range t.Req.MCP {
		all[m.Name] = server{m.Command, m.Args, m.Env, true}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		return err
	}
	file := filepath.Join(t.Req.State, "mcp.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return kernel.E("invoke", kernel.ReadOnly, err, "the agent's tool servers cannot be written")
	}
	s.Args = append(s.Args, "--mcp-config", file)
	return nil
}

// newID is a random name for a session, a UUID as the programs want it.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] %= 0xa0 // begins with a digit: an end of a text that could begin a hidden name is held back, and few end so
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
