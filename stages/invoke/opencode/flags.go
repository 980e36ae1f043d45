package opencode

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/stream"
)

// title is that of the sessions; without one a model is asked for it.
const title = "Witan"

// command completes the arguments and the environment of a turn.
func (c Config) command(t *stream.Turn, s *proc.Spec) error {
	s.Args = append(s.Args, "run", "--format", "json")
	if t.Resume != "" {
		s.Args = append(s.Args, "--session", t.Resume)
	} else {
		s.Args = append(s.Args, "--title", title)
	}
	if c.Model != "" {
		s.Args = append(s.Args, "--model", c.Model)
	}
	if c.Effort != "" {
		s.Args = append(s.Args, "--variant", c.Effort)
	}
	prefix := "OPENCODE"
	if strings.HasPrefix(strings.ToLower(filepath.Base(s.Path)), "kilo") { // a fork with names of its own
		prefix = "KILO"
	} else {
		s.Args = append(s.Args, "--thinking") // which is no text, and a sign of life
	}
	stream.Default(s, prefix+"_DISABLE_AUTOUPDATE", "1")
	return configure(s, prefix+"_CONFIG_CONTENT", !t.Req.Turn.Write && !stream.Held(*s), t.Req.MCP)
}

// configure adds to the settings in the environment, which may hold those of the
// person. They are no arguments: what a tool server is given may be secret.
func configure(s *proc.Spec, name string, readOnly bool, servers []kernel.MCPServer) error {
	if !readOnly && len(servers) == 0 {
		return nil
	}
	all := map[string]json.RawMessage{}
	for i := 0; i < len(s.Env); i++ {
		if was, ok := strings.CutPrefix(s.Env[i], name+"="); ok {
			if err := json.Unmarshal([]byte(was), &all); err != nil {
				return unreadable(name)
			}
			s.Env = append(s.Env[:i], s.Env[i+1:]...)
			i--
		}
	}
	if readOnly {
		if err := deny(all); err != nil {
			return unreadable(name)
		}
	}
	if err := offer(all, servers); err != nil {
		return unreadable(name)
	}
	s.Env = append(s.Env, name+"="+string(encode(all)))
	return nil
}

func unreadable(name string) error {
	return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start", Text: "the agent's variable " + name + " does not hold settings as JSON"}
}

// deny takes the tools away that change something. Nothing less is read-only:
// the program's own plan mode runs commands.
func deny(all map[string]json.RawMessage) error {
	rules := map[string]any{}
	var word string
	switch was := all["permission"]; {
	case was == nil:
	case json.Unmarshal(was, &word) == nil:
		rules["*"] = word
	default:
		if err := json.Unmarshal(was, &rules); err != nil {
			return err
		}
	}
	rules["edit"], rules["bash"] = "deny", "deny"
	all["permission"] = encode(rules)
	return nil
}

// offer adds tool servers to those that the person has.
func offer(all map[string]json.RawMessage, servers []kernel.MCPServer) error {
	if len(servers) == 0 {
		return nil
	}
	mcp := map[string]any{}
	if was := all["mcp"]; was != nil {
		if err := json.Unmarshal(was, &mcp); err != nil {
			return err
		}
	}
	for _, m := range servers {
		server := map[string]any{"type": "local", "enabled": true, "command": append([]string{m.Command}, m.Args...)}
		if len(m.Env) > 0 {
			server["environment"] = m.Env
		}
		mcp[m.Name] = server
	}
	all["mcp"] = encode(mcp)
	return nil
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, and JSON that was read
	}
	return b
}
