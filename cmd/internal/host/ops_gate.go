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

func opGates(ctx context.Context, h *Host, _ none, emit Emit) error {
	all, err := h.engine.Gates(ctx)
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
	run, err := h.engine.Decide(ctx, kernel.DecidedBody{By: "person", Gate: kernel.GateID(a.Gate), Option: a.Option, Text: a.Text})
	if err != nil {
		return err
	}
	return give(emit, answerRow{a.Gate, a.Option, run, h.engine.Active(run)})
}
