package host

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"witan/cmd/internal/config"
	"witan/kernel"
	"witan/stages/invoke/acp"
	"witan/stages/invoke/builtin"
	"witan/stages/invoke/proc"
)

// member is an agent that this host can use.
type member struct {
	ID       kernel.AgentID
	Name     string
	Protocol string // "builtin" or a protocol of the configuration
	Writable bool
	command  []string
	invoker  kernel.Invoker
}

// idleAgent is how long a process without work is kept.
const idleAgent = 10 * time.Minute

func (h *Host) agent(id kernel.AgentID) *member {
	for _, m := range h.agents {
		if m.ID == id {
			return m
		}
	}
	return nil
}

func builtinIDs() []string { return []string{"scout", "inspector", "runner"} }

// runner runs git, checks and tests: supervised, and confined where asked.
func (h *Host) runner() proc.Runner {
	return proc.Runner{KillGrace: time.Duration(h.cfg.Watchdog.KillGrace), Private: h.opts.Home}
}

// members_ builds the built-in and the configured agents. A configured one with
// the id of a built-in one takes its place.
func (h *Host) members_() ([]*member, error) {
	var out []*member
	dog := acp.Watchdog{Startup: time.Duration(h.cfg.Watchdog.Startup), Notice: time.Duration(h.cfg.Watchdog.Notice),
		NoOutput: time.Duration(h.cfg.Watchdog.NoOutput), Tool: time.Duration(h.cfg.Watchdog.Tool), CancelGrace: time.Duration(h.cfg.Watchdog.CancelGrace)}
	base := acp.Config{Sessions: h.store.Conversations, Watchdog: dog, LineBytes: h.cfg.Limits.LineBytes, Idle: idleAgent, Instance: h.instance}
	for _, b := range builtin.All(h.runner()) {
		info := b.Info()
		if _, ok := h.cfg.Agents[string(info.ID)]; ok {
			continue
		}
		c := base
		c.ID = info.ID
		c.Connect = acp.InProcess(func(ctx context.Context, r io.Reader, w io.Writer) error { return builtin.Serve(ctx, r, w, b) })
		out = append(out, &member{ID: info.ID, Name: info.Name, Protocol: "builtin", Writable: true, invoker: acp.New(c)})
	}
	for _, id := range slices.Sorted(maps.Keys(h.cfg.Agents)) {
		ac := h.cfg.Agents[id]
		m := &member{ID: kernel.AgentID(id), Name: ac.Name, Protocol: ac.Protocol, Writable: ac.Writable == nil || *ac.Writable, command: ac.Command}
		if m.Name == "" {
			m.Name = id
		}
		m.invoker = h.adapter(m.ID, ac, base)
		out = append(out, m)
	}
	return out, nil
}

// minSecret is the shortest value that is taken for one: shorter ones are words.
const minSecret = 8

// hidden are the values of an agent's own environment and the path of its program.
func hidden(ac config.Agent) map[string]string {
	out := map[string]string{}
	for k, v := range ac.Env {
		if len(v) >= minSecret {
			out[v] = "[" + k + "]"
		}
	}
	if p, err := proc.LookPath(ac.Command[0], ""); err == nil {
		out[p] = filepath.Base(p)
	}
	if filepath.IsAbs(ac.Command[0]) {
		out[ac.Command[0]] = filepath.Base(ac.Command[0])
	}
	return out
}

// spec is how a configured agent is started for a place.
func (h *Host) spec(id string, ac config.Agent, p acp.Place) (proc.Spec, error) {
	tmp, err := h.folder("agents", string(p.Conversation), id, "tmp")
	if err != nil {
		return proc.Spec{}, err
	}
	extra := map[string]string{"TMPDIR": tmp, "WITAN_HOST": h.instance}
	for k, v := range ac.Env {
		extra[k] = v
	}
	write := []string{tmp, p.State}
	if p.Output != "" {
		write = append(write, p.Output)
	}
	if p.Write {
		write = append(write, p.Workspace)
	}
	write = append(write, h.stateFolders(ac, extra)...)
	return proc.Spec{Path: ac.Command[0], Args: ac.Command[1:], Dir: p.Workspace, Env: proc.Env(extra), Confine: true, Write: write,
		KillGrace: time.Duration(h.cfg.Watchdog.KillGrace), Marker: "WITAN_RUN=" + string(p.Run),
		Shared: p.Write && !proc.Below(p.Workspace, h.opts.Home)}, nil
}

// known are the folders in which agents keep their state, below the home folder.
var known = map[string][]string{
	"opencode": {".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"},
	"claude":   {".claude", ".claude.json"}, "codex": {".codex"}, "gemini": {".gemini"}, "qwen": {".qwen"}, "copilot": {".copilot"},
	"kilo": {".config/kilo", ".local/share/kilo", ".local/state/kilo", ".cache/kilo"}, "pi": {".pi"}, "openclaw": {".openclaw"},
}

// caches are those of build tools that every agent may fill.
var caches = []string{".cache/go-build", ".npm", ".cache/pip", ".cargo/registry", ".cache/ms-playwright"}

func (h *Host) stateFolders(ac config.Agent, env map[string]string) []string {
	home := env["HOME"]
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	var out []string
	for _, rel := range append(slices.Clone(known[filepath.Base(ac.Command[0])]), caches...) {
		out = append(out, filepath.Join(home, rel))
	}
	for _, p := range ac.State {
		if rest, ok := strings.CutPrefix(p, "~/"); ok {
			p = filepath.Join(home, rest)
		}
		_ = os.MkdirAll(p, 0o700) // so that it can be allowed; a file that is there is left alone
		out = append(out, p)
	}
	return out
}

// reapSurvivors ends processes that a dead host's supervisors could not: they
// carry the id of one of its unfinished runs.
func (h *Host) reapSurvivors(ctx context.Context) int {
	runs := map[string]bool{}
	for s, err := range h.store.Ledger.Summaries(ctx) {
		if err != nil {
			break
		}
		if s.Status == kernel.RunRunning {
			runs[string(s.Run)] = true
		}
	}
	if len(runs) == 0 {
		return 0
	}
	n := 0
	for _, s := range proc.Survivors("WITAN_RUN", runs) {
		if s.Reap() {
			n++
		}
	}
	return n
}

// AgentRef names an agent.
type AgentRef struct {
	Agent string `json:"agent,omitempty"`
}

type agentRow struct {
	Agent    kernel.AgentID `json:"agent"`
	Name     string         `json:"name"`
	Protocol string         `json:"protocol"`
	Version  string         `json:"version"`
	Status   string         `json:"status"`
	Reason   string         `json:"reason"`
	Next     string         `json:"next"`
}

// row says whether an agent can be used; nothing is started for it.
func (m *member) row(version string) agentRow {
	r := agentRow{Agent: m.ID, Name: m.Name, Protocol: m.Protocol, Status: "ready"}
	switch {
	case m.Protocol == "builtin":
		r.Version = version
	default:
		if _, err := proc.LookPath(m.command[0], ""); err != nil {
			r.Status, r.Reason, r.Next = "not-installed", "command_not_found", "install it, or correct its command in config.toml"
			var e *kernel.Error
			if errors.As(err, &e) && e.Kind == kernel.Invalid {
				r.Reason = "command_not_executable"
			}
		}
	}
	return r
}

func opAgents(ctx context.Context, h *Host, _ none, emit Emit) error {
	for _, m := range h.agents {
		if err := give(emit, m.row(h.opts.Version)); err != nil {
			return err
		}
	}
	return nil
}

func opAgentsDoctor(ctx context.Context, h *Host, a AgentRef, emit Emit) error {
	if a.Agent != "" && h.agent(kernel.AgentID(a.Agent)) == nil {
		var ids []string
		for _, m := range h.agents {
			ids = append(ids, string(m.ID))
		}
		return unknown("agent", a.Agent, ids)
	}
	for _, m := range h.agents {
		if a.Agent == "" || string(m.ID) == a.Agent {
			if err := give(emit, m.row(h.opts.Version)); err != nil {
				return err
			}
		}
	}
	return nil
}
