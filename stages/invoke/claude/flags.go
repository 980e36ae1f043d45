package claude

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/stages/invoke/proc"
)

// protocol makes the program speak the duplex stream and ask before it acts. A
// mode that the person's settings prefer does not count.
var protocol = []string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
	"--include-partial-messages", "--permission-prompt-tool", "stdio", "--permission-mode", "default"}

// harmless are the tools that are left to a read-only turn which the system does
// not hold: an answer to a question binds only an agent that asks.
const harmless = "Read,Grep,Glob,WebFetch,WebSearch"

// unwanted are tools that wait for a person at the terminal, or that work beyond
// the turn or outside of its folder.
const unwanted = "AskUserQuestion,CronCreate,ScheduleWakeup,EnterWorktree,EnterPlanMode"

// settings are variables that the configuration may set otherwise: nothing goes
// on in the background once a turn has ended, and the provider is not asked again
// and again for minutes before a failure is told.
var settings = []string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1", "CLAUDE_CODE_MAX_RETRIES=4"}

// flags are the arguments of a process for the session of j.
func (a *Agent) flags(s proc.Spec, j *job) ([]string, error) {
	out := append([]string{}, protocol...)
	if j.req.Turn.Continue {
		out = append(out, "--resume", j.session)
	} else {
		out = append(out, "--session-id", j.session)
	}
	if a.cfg.Model != "" {
		out = append(out, "--model", a.cfg.Model)
	}
	if a.cfg.Effort != "" {
		out = append(out, "--effort", a.cfg.Effort)
	}
	if !j.req.Turn.Write && !held(s) {
		out = append(out, "--tools", harmless)
	}
	out = append(out, "--disallowedTools", unwanted)
	if len(j.req.MCP) == 0 {
		return out, nil
	}
	// A file: what a tool server is given may be secret, and arguments are not.
	file := filepath.Join(j.req.State, "mcp.json")
	if err := os.WriteFile(file, servers(j.req.MCP), 0o600); err != nil {
		return nil, kernel.E("invoke", kernel.ReadOnly, err, "the agent's tool servers cannot be written")
	}
	out = append(out, "--mcp-config", file, "--allowedTools")
	for _, m := range j.req.MCP {
		out = append(out, "mcp__"+m.Name)
	}
	return out, nil
}

func held(s proc.Spec) bool {
	_, ok := proc.Landlock()
	return s.Confine && ok
}

// servers are tool servers as the program reads them.
func servers(offered []kernel.MCPServer) []byte {
	type server struct {
		Command string            `json:"command"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
	}
	all := map[string]server{}
	for _, m := range offered {
		all[m.Name] = server{m.Command, m.Args, m.Env}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		panic(err) // texts only
	}
	return b
}

// newID is a random name for a session, a UUID as the program wants it.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[0] %= 0xa0 // begins with a digit: an end of a text that could begin a hidden name is held back, and few end so
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
