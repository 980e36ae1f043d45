package turn

import (
	"context"
	"fmt"
	"time"

	"witan/kernel"
)

// Watchdog bounds silence (SPEC G5). Zero values take the defaults.
type Watchdog struct {
	Startup     time.Duration // until the agent can be given its prompt; 90 s
	Notice      time.Duration // "silent for …" is shown, again and again; 20 s
	NoOutput    time.Duration // then stalled; 10 min
	Tool        time.Duration // the same while a tool runs; 30 min
	CancelGrace time.Duration // from the protocol's cancel to the end by force; 2 s
}

// WithDefaults fills in what is zero.
func (w Watchdog) WithDefaults() Watchdog {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&w.Startup, 90*time.Second)
	def(&w.Notice, 20*time.Second)
	def(&w.NoOutput, 10*time.Minute)
	def(&w.Tool, 30*time.Minute)
	def(&w.CancelGrace, 2*time.Second)
	return w
}

// Watch is the watchdog of one turn. Its timer lives as long as the turn.
type Watch struct {
	w     Watchdog
	r     *Recorder
	last  time.Time // of progress
	timer *time.Timer
}

// Watch begins to watch what r records.
func (w Watchdog) Watch(r *Recorder) *Watch {
	return &Watch{w: w, r: r, last: time.Now(), timer: time.NewTimer(min(w.Notice, w.NoOutput))}
}

// C says when to call Bark.
func (d *Watch) C() <-chan time.Time { return d.timer.C }

// Stop ends the watch.
func (d *Watch) Stop() { d.timer.Stop() }

// Moved notes progress.
func (d *Watch) Moved() {
	d.last = time.Now()
	d.timer.Reset(min(d.w.Notice, d.w.NoOutput))
}

// Bark says that the agent is silent, and in the end gives up on it with a
// *kernel.Failure. An agent that waits for a person is not silent.
func (d *Watch) Bark() error {
	select {
	case <-d.r.Progress: // it came at the same moment
		d.Moved()
		return nil
	default:
	}
	tool, person := d.r.busy()
	if person {
		d.Moved()
		return nil
	}
	limit := d.w.NoOutput
	if tool {
		limit = max(limit, d.w.Tool)
	}
	silent := time.Since(d.last)
	if silent >= limit {
		return &kernel.Failure{Class: kernel.ClassTimeout, Reason: "stalled", Status: "stalled",
			Text: fmt.Sprintf("the agent was silent for %s and was ended; what it said is kept", silent.Round(time.Second))}
	}
	if silent >= d.w.Notice {
		d.r.silent(silent)
	}
	d.timer.Reset(min(d.w.Notice, limit-silent))
	return nil
}

// Starting bounds the time until the agent can be given its prompt, and says
// while it lasts that nothing is heard yet. The cause of the end of the context
// is *StartupError.
func (w Watchdog) Starting(ctx context.Context, r *Recorder) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.Startup, &StartupError{w.Startup})
	t0, over := time.Now(), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(w.Notice)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.silent(time.Since(t0))
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(); <-over }
}

// StartupError says that an agent was not ready in time.
type StartupError struct{ Limit time.Duration }

func (e *StartupError) Error() string {
	return fmt.Sprintf("the agent did not answer within %s of its start", e.Limit)
}
