package codex

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/stream"
)

// command completes the arguments and the environment of a turn. Settings go by
// -c, which a resumed thread takes too.
func (c Config) command(t *stream.Turn, s *proc.Spec) error {
	s.Args = append(s.Args, "exec")
	if t.Resume != "" {
		s.Args = append(s.Args, "resume")
	}
	s.Args = append(s.Args, "--json", "--skip-git-repo-check")
	switch {
	case stream.Held(*s):
		s.Args = append(s.Args, "--dangerously-bypass-approvals-and-sandbox")
	case t.Req.Turn.Write:
		set(s, "sandbox_mode", "workspace-write")
		if dir := t.Req.Turn.OutputDir; dir != "" {
			set(s, "sandbox_workspace_write.writable_roots", []string{dir})
		}
	default:
		set(s, "sandbox_mode", "read-only")
	}
	if c.Model != "" {
		s.Args = append(s.Args, "--model", c.Model)
	}
	if c.Effort != "" {
		set(s, "model_reasoning_effort", c.Effort)
	}
	for _, m := range t.Req.MCP {
		if err := offer(s, m); err != nil {
			return err
		}
	}
	if t.Resume != "" {
		s.Args = append(s.Args, t.Resume)
	}
	s.Args = append(s.Args, "-") // the prompt is on stdin
	return nil
}

// set adds a setting. What JSON writes of texts and lists of them, TOML reads.
func set(s *proc.Spec, key string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts only
	}
	s.Args = append(s.Args, "-c", key+"="+string(b))
}

// bare are names that need no quotes in the path of a setting.
var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// offer adds a tool server. Its variables go through the program's environment.
func offer(s *proc.Spec, m kernel.MCPServer) error {
	if !bare.MatchString(m.Name) {
		return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start", Text: "the agent cannot take a tool server named " + m.Name}
	}
	at := "mcp_servers." + m.Name + "."
	set(s, at+"command", m.Command)
	set(s, at+"args", append([]string{}, m.Args...))
	set(s, at+"default_tools_approval_mode", "approve") // nobody could be asked
	names := []string{}
	for k, v := range m.Env {
		names = append(names, k)
		i := slices.IndexFunc(s.Env, func(kv string) bool { return strings.HasPrefix(kv, k+"=") })
		switch {
		case i < 0:
			s.Env = append(s.Env, k+"="+v)
		case s.Env[i] != k+"="+v:
			return &kernel.Failure{Class: kernel.ClassCompatibility, Reason: "cannot_start", Text: "the tool server " + m.Name + " wants another value of " + k + " than the agent has"}
		}
	}
	slices.Sort(names)
	set(s, at+"env_vars", names)
	return nil
}
