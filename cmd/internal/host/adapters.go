package host

import (
	"witan/cmd/internal/config"
	"witan/kernel"
	"witan/stages/invoke/acp"
	"witan/stages/invoke/claude"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/text"
	"witan/stages/invoke/turn"
)

// adapter builds what speaks an agent's protocol; unsupported says that this
// version has none for it.
func (h *Host) adapter(id kernel.AgentID, ac config.Agent, base acp.Config) (_ kernel.Invoker, unsupported bool) {
	spec := func(p turn.Place) (proc.Spec, error) { return h.spec(string(id), ac, p) }
	switch ac.Protocol {
	case "claude-stream-json":
		return claude.New(claude.Config{ID: id, Spec: spec, Sessions: base.Sessions, Effort: h.cfg.Run.Effort, Watchdog: base.Watchdog,
			LineBytes: base.LineBytes, Idle: base.Idle, Hide: hidden(ac)}), false
	case "text":
		return text.New(text.Config{ID: id, Spec: spec, Sessions: base.Sessions, Watchdog: base.Watchdog, Hide: hidden(ac)}), false
	}
	c := base
	c.ID = id
	c.Usage = acp.UsageRule{SessionTotal: ac.Usage == "session-total", InputExcludesCache: ac.InputIncludesCache != nil && !*ac.InputIncludesCache}
	c.Hide = hidden(ac)
	c.Connect = acp.Process(spec)
	return acp.New(c), ac.Protocol != "acp"
}
