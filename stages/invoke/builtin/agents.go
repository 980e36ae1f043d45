package builtin

import (
	"time"

	"witan/kernel"
	"witan/stages/invoke/builtin/inspector"
	"witan/stages/invoke/builtin/runner"
	"witan/stages/invoke/builtin/scout"
	"witan/stages/invoke/builtin/work"
)

// Agent is a built-in agent.
type Agent = work.Agent

// Option changes how the agents work.
type Option func(*options)

type options struct{ testLimit time.Duration }

// TestLimit bounds the tests that the runner starts; 2 minutes by default.
func TestLimit(d time.Duration) Option { return func(o *options) { o.testLimit = d } }

// All returns the built-in agents in the order in which they are shown. They
// start git, tool chains and tests through run and nothing else.
func All(run kernel.Runner, opts ...Option) []Agent {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	sc, in, ru := scout.New(run), inspector.New(run), runner.New(run, o.testLimit)
	return []Agent{
		&member{Agent: sc, review: in.As(sc.Info().ID), kind: reviewContent, checks: inspector.ID, run: run},
		&member{Agent: in, review: in, kind: reviewContent, checks: inspector.ID, run: run},
		&member{Agent: ru, review: ru, kind: reviewTests, checks: ru.Info().ID, run: run},
	}
}
