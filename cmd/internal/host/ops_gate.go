package host

import (
	"context"
	"time"

	"witan/kernel"
)

// AnswerArgs answers a gate.
type AnswerArgs struct {
	Gate   string `json:"gate"`
	Option string `json:"option"`
	Text   string `json:"text,omitempty"`
	Same   bool   `json:"same,omitempty"` // and every other gate that asks the same of the same agent
}

type gateRow struct {
	Gate    kernel.GateID       `json:"gate"`
	Kind    string              `json:"kind"`
	Run     kernel.RunID        `json:"run"`
	Attempt kernel.AttemptID    `json:"attempt,omitempty"`
	Agent   kernel.AgentID      `json:"agent,omitempty"`
	Summary string              `json:"summary"`
	Target  string              `json:"target"`
	Options []kernel.GateOption `json:"options"`
	Opened  time.Time           `json:"opened"`
}

// GatesArgs says which gates are listed: those that wait, or those whose answer
// allows something for a run.
type GatesArgs struct {
	Grants bool `json:"grants,omitempty"`
}

func opGates(ctx context.Context, h *Host, a GatesArgs, emit Emit) error {
	list := h.engine.Gates
	if a.Grants {
		list = h.engine.Grants
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	for _, g := range all {
		row := gateRow{Gate: g.Gate.Gate, Kind: g.Gate.Kind, Run: g.Run, Attempt: g.Gate.Attempt, Agent: g.Agent, Summary: g.Gate.Summary,
			Target: g.Gate.Target, Options: g.Gate.Options, Opened: g.Gate.At}
		if err := give(emit, row); err != nil {
			return err
		}
	}
	return nil
}

type answerRow struct {
	Gate   string       `json:"gate"`
	Option string       `json:"option"`
	Run    kernel.RunID `json:"run"`
	Active bool         `json:"active"` // the run goes on by itself; else it needs a resume
}

// maxAnswer bounds the text of an answer, in bytes.
const maxAnswer = 32_000

func opAnswer(ctx context.Context, h *Host, a AnswerArgs, emit Emit) error {
	if len(a.Text) > maxAnswer {
		return kernel.E("host.answer", kernel.Invalid, nil, "the text has %d bytes, more than %d", len(a.Text), maxAnswer).WithNext("shorten it")
	}
	gates := []kernel.GateID{kernel.GateID(a.Gate)}
	if a.Same {
		same, err := h.alike(ctx, gates[0])
		if err != nil {
			return err
		}
		gates = append(gates, same...)
	}
	for _, g := range gates { // each has a record of its own
		run, err := h.engine.Decide(ctx, kernel.DecidedBody{By: "person", Gate: g, Option: a.Option, Text: a.Text})
		if err != nil {
			return err
		}
		if err := give(emit, answerRow{string(g), a.Option, run, h.engine.Active(run)}); err != nil {
			return err
		}
	}
	return nil
}

// alike are the other gates that ask what a gate asks, of the same agent in the
// same run.
func (h *Host) alike(ctx context.Context, id kernel.GateID) ([]kernel.GateID, error) {
	all, err := h.engine.Gates(ctx)
	if err != nil {
		return nil, err
	}
	var out []kernel.GateID
	for _, this := range all {
		if this.Gate.Gate != id || this.Gate.Key.IsZero() {
			continue
		}
		for _, g := range all {
			if g.Gate.Gate != id && g.Run == this.Run && g.Agent == this.Agent && g.Gate.Key == this.Gate.Key {
				out = append(out, g.Gate.Gate)
			}
		}
	}
	return out, nil
}
