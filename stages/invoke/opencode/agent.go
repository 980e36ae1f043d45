package opencode

import (
	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/stream"
	"witan/stages/invoke/turn"
)

// Config of New.
type Config struct {
	ID        kernel.AgentID
	Spec      func(turn.Place) (proc.Spec, error)
	Sessions  stream.Sessions
	Model     string // provider/model; "" = the agent's own choice
	Effort    string // what the agent calls a variant; "" = the agent's own choice
	Watchdog  turn.Watchdog
	LineBytes int       // of one event; 0 = 16 MiB
	Hide      turn.Hide // texts that must not get out of the host
}

// New returns the adapter of one agent.
func New(c Config) *stream.Agent {
	return stream.New(stream.Config{ID: c.ID, Spec: c.Spec, Sessions: c.Sessions, Watchdog: c.Watchdog, LineBytes: c.LineBytes, Hide: c.Hide,
		Open: func(t *stream.Turn, s *proc.Spec) (stream.Reader, []byte, error) {
			if err := c.command(t, s); err != nil {
				return nil, nil, err
			}
			return &reader{t: t}, t.Req.Prompt, nil
		}})
}
