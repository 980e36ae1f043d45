package host

import (
	"witan/cmd/internal/config"
	"witan/kernel"
	"witan/stages/invoke/acp"
	"witan/stages/invoke/claude"
	"witan/stages/invoke/codex"
	"witan/stages/invoke/gemini"
	"witan/stages/invoke/opencode"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/text"
	"witan/stages/invoke/turn"
)

// adapter builds what speaks an agent's protocol.
func (h *Host) adapter(id kernel.AgentID, ac config.Agent, base acp.Config) kernel.Invoker {
	spec := func(p turn.Place) (proc.Spec, error) { return h.spec(string(id), ac, p) }
	effort, hide := h.cfg.Run.Effort, hidden(ac)
	switch ac.Protocol {
	case "claude-stream-json":
		return claude.New(claude.Config{ID: id, Spec: spec, Sessions: base.Sessions, Effort: effort, Watchdog: base.Watchdog,
			LineBytes: base.LineBytes, Idle: base.Idle, Hide: hide})
	case "codex-json":
		return codex.New(codex.Config{ID: id, Spec: spec, Sessions: base.Sessions, Effort: effort, Watchdog: base.Watchdog, LineBytes: base.LineBytes, Hide: hide})
	case "gemini-stream-json":
		return gemini.New(gemini.Config{ID: id, Spec: spec, Sessions: base.Sessions, Watchdog: base.Watchdog, LineBytes: base.LineBytes, Hide: hide})
	case "opencode-json":
		return opencode.New(opencode.Config{ID: id, Spec: spec, Sessions: base.Sessions, Effort: effort, Watchdog: base.Watchdog, LineBytes: base.LineBytes, Hide: hide})
	case "text":
		return text.New(text.Config{ID: id, Spec: spec, Sessions: base.Sessions, Watchdog: base.Watchdog, Hide: hide})
	}
	c := base
	c.ID = id
	c.Usage = acp.UsageRule{SessionTotal: ac.Usage == "session-total", InputExcludesCache: ac.InputIncludesCache != nil && !*ac.InputIncludesCache}
	c.Hide = hide
	c.Connect = acp.Process(spec)
	return acp.New(c)
}
