// Package say turns errors and run states into what a person and a script see:
// one sentence with the next step, and an exit code.
package say

import (
	"context"
	"errors"
	"strings"

	"witan/kernel"
)

// Exit codes of the command line; they are a contract.
const (
	Done     = 0
	Bug      = 1
	Usage    = 2
	Unwell   = 3 // failed, partial, blocked, round-limit
	Gate     = 4
	Stopped  = 5
	Budget   = 6
	NotHold  = 7
	Unusable = 8
)

// Code is the exit code for an error.
func Code(err error) int {
	if err == nil {
		return Done
	}
	var x *Exit
	if errors.As(err, &x) {
		return x.Code
	}
	switch kernel.KindOf(err) {
	case kernel.Invalid, kernel.NotFound, kernel.Exists, kernel.Conflict, kernel.Unsupported:
		return Usage
	case kernel.Corrupt:
		return NotHold
	case kernel.NoSpace, kernel.ReadOnly, kernel.Locked, kernel.Newer:
		return Unusable
	case kernel.Cancelled, kernel.Interrupted:
		return Stopped
	}
	if errors.Is(err, context.Canceled) {
		return Stopped
	}
	return Bug
}

// RunCode is the exit code for how a run ended.
func RunCode(status kernel.RunStatus, reason string) int {
	switch status {
	case kernel.RunCompleted, kernel.RunRunning:
		return Done
	case kernel.RunWaiting:
		return Gate
	case kernel.RunStopped, kernel.RunInterruptedSt:
		return Stopped
	case kernel.RunBudgetExhausted:
		return Budget
	}
	if reason == kernel.ReasonSnapshotChanged {
		return NotHold
	}
	if reason == "no_space" {
		return Unusable
	}
	return Unwell
}

// Exit is an end with its own exit code. Text is empty when everything was told
// to the person already.
type Exit struct {
	Code int
	Text string
}

func (e *Exit) Error() string { return e.Text }

// Sentence is the one line for a person: WHAT: WHY (next step).
func Sentence(err error) string {
	var e *kernel.Error
	if !errors.As(err, &e) {
		return oneLine(err.Error())
	}
	what, why, next := e.What, "", e.Next
	for cause := e.Err; cause != nil; {
		var k *kernel.Error
		if errors.As(cause, &k) {
			if next == "" {
				next = k.Next
			}
			if what == "" {
				what = k.What
			} else if k.What != "" {
				why = k.What
			}
			cause = k.Err
			continue
		}
		why = cause.Error()
		break
	}
	if what == "" {
		what = e.Kind.String()
	}
	s := what
	if why != "" && why != what {
		s += ": " + why
	}
	if next != "" {
		s += " (" + next + ")"
	}
	return oneLine(s)
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
}
