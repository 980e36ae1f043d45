package builtin_test

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"time"

	"witan/kernel"
)

// execRunner is the smallest kernel.Runner: it neither confines nor bounds
// output, which the agents must not depend on.
type execRunner struct{}

func (execRunner) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	timed := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(timed, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, bytes.NewReader(c.Stdin), &out, &errs
	cmd.WaitDelay = time.Second
	group(cmd)
	err := cmd.Run()
	res := kernel.CommandResult{Exit: cmd.ProcessState.ExitCode(), Stdout: out.Bytes(), Stderr: errs.Bytes(), TimedOut: ctx.Err() == nil && timed.Err() != nil}
	var exit *exec.ExitError
	switch {
	case cmd.ProcessState == nil:
		return kernel.CommandResult{}, kernel.E("test.Run", kernel.NotFound, err, "the command cannot be started")
	case err != nil && !errors.As(err, &exit) && !res.TimedOut && ctx.Err() == nil:
		return res, err
	}
	return res, ctx.Err()
}
