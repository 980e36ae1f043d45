// Package external makes any executable a stage: one JSON object on stdin, one
// on stdout, as for `witan stage`. A non-zero exit or an answer that is not of
// the stage's shape is a failure of the stage, with its stderr kept.
package external

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/secrets"
)

const (
	defaultTimeout = 10 * time.Minute
	maxOutput      = 8 << 20
)

type options struct {
	Command []string `json:"command"`
	Timeout string   `json:"timeout,omitempty"`
}

type stage[In, Out any] struct {
	kind string
	run  kernel.Runner
}

// New returns the stage kind+"/exec" for the types of that kind.
func New[In, Out any](kind string, run kernel.Runner) kernel.Stage[In, Out] {
	return stage[In, Out]{kind, run}
}

func (s stage[In, Out]) Spec() kernel.Spec {
	return kernel.Spec{ID: s.kind + "/exec", Version: 1, Class: kernel.Keyed, Touches: []string{"process"},
		Doc:     "Runs an executable as the stage: JSON in, JSON out",
		Options: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}},"timeout":{"type":"string"}},"required":["command"],"additionalProperties":false}`),
		In:      kernel.Schema[In](), Out: kernel.Schema[Out]()}
}

type envelope[T any] struct {
	Version int             `json:"version"`
	Stage   string          `json:"stage,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
	In      *T              `json:"in,omitempty"`
}

type answer struct {
	Version int             `json:"version"`
	Out     json.RawMessage `json:"out"`
	Hash    kernel.Digest   `json:"hash"`
	Usage   json.RawMessage `json:"usage"`
}

func (s stage[In, Out]) Run(ctx context.Context, env kernel.Env, in In) (out Out, err error) {
	var opt options
	if err := kernel.DecodeStrict(env.Options, &opt); err != nil {
		return out, err
	}
	if len(opt.Command) == 0 {
		return out, kernel.E("external.Run", kernel.Invalid, nil, "%s/exec has no command", s.kind).WithNext(`add command = ["./program"]`)
	}
	timeout := defaultTimeout
	if opt.Timeout != "" {
		if timeout, err = time.ParseDuration(opt.Timeout); err != nil || timeout <= 0 {
			return out, kernel.E("external.Run", kernel.Invalid, nil, "timeout %q is no duration", opt.Timeout)
		}
	}
	stdin, err := kernel.Canonical(envelope[In]{Version: 1, Stage: s.kind + "/exec", Options: json.RawMessage("{}"), In: &in})
	if err != nil {
		return out, err
	}
	r, err := s.run.Run(ctx, kernel.Command{Argv: opt.Command, Stdin: stdin, Timeout: timeout, Limit: maxOutput})
	if err != nil {
		return out, err
	}
	fail := func(what string) error {
		text := opt.Command[0] + " " + what
		if e := strings.TrimSpace(secrets.Redact(strings.ToValidUTF8(string(r.Stderr), "\uFFFD"))); e != "" {
			text += ": " + e
		}
		return &kernel.Failure{Class: kernel.ClassExecution, Reason: "exec_failed", Text: text}
	}
	switch {
	case r.TimedOut:
		return out, fail(fmt.Sprintf("did not end within %s", timeout))
	case r.Exit != 0:
		return out, fail(fmt.Sprintf("exited with %d", r.Exit))
	case r.Cut > 0:
		return out, fail("said more than 8 MiB")
	}
	var a answer
	if err := kernel.DecodeStrict(r.Stdout, &a); err != nil || a.Version != 1 {
		return out, fail("gave no answer of version 1")
	}
	if err := kernel.DecodeStrict(a.Out, &out); err != nil {
		return out, fail("gave an answer of another shape: " + err.Error())
	}
	return out, nil
}
