package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/turn"
)

const (
	drain  = 15 * time.Second // how long the last output of an ended program may take to be read: its last line may be large, and the machine busy
	linger = 5 * time.Second  // how long a program may take to end after the end of the turn
	never  = 1 << 62
)

// errRefused is a value that a Reader cannot take.
var errRefused = errors.New("unexpected")

// run reads the stream until the program and all that it started are gone.
func (a *Agent) run(ctx context.Context, t *Turn, tr turn.Transport, r Reader, input []byte) error {
	var wg sync.WaitGroup
	wg.Go(func() { // a program that reads nothing is no reason to wait
		_, _ = tr.Write(input)
		tr.CloseWrite()
	})
	read := make(chan error, 1)
	go func() { read <- a.read(t, tr, r) }()
	rerr, done, err := a.wait(ctx, t, tr, read)
	if err != nil {
		t.R.Stop()
	}
	tr.Stop() // of no effect on one that is gone
	<-tr.Done()
	if !done {
		late := time.NewTimer(drain)
		select {
		case rerr = <-read:
			done = true
		case <-late.C: // somebody outside of the tree holds the pipe
		}
		late.Stop()
	}
	e := tr.Exit()
	tr.Close()
	if !done {
		rerr = <-read
	}
	wg.Wait()
	if err != nil {
		return err
	}
	return judge(t, r, rerr, e)
}

// read gives the values to the Reader, and returns why it stopped.
func (a *Agent) read(t *Turn, tr turn.Transport, r Reader) error {
	opt := jsonrpc.Options{Limit: a.cfg.LineBytes, Noise: func(line []byte) { t.Diagnostic(string(line)) }}
	return jsonrpc.Values(context.Background(), tr, opt, func(v json.RawMessage) error {
		err := r.Value(v)
		var f *kernel.Failure
		if err == nil || errors.As(err, &f) {
			return err
		}
		return fmt.Errorf("%w: %w", errRefused, err)
	})
}

// wait returns when the tree is gone or should go: done with rerr once reading
// ended, and err as the reason to end what still runs.
func (a *Agent) wait(ctx context.Context, t *Turn, tr turn.Transport, read <-chan error) (rerr error, done bool, err error) {
	watch := a.cfg.Watchdog.Watch(t.R)
	defer watch.Stop()
	over := (<-chan struct{})(t.over)
	late := time.NewTimer(never)
	defer late.Stop()
	for {
		select {
		case <-tr.Done():
			return rerr, done, nil
		case rerr = <-read:
			if done, read = true, nil; broken(rerr) != nil && !errors.Is(rerr, io.ErrUnexpectedEOF) {
				return rerr, true, nil
			}
			over = nil
			late.Reset(a.cfg.Watchdog.CancelGrace) // most often it is about to end by itself
		case <-over:
			over = nil
			late.Reset(linger)
		case <-late.C:
			return rerr, done, nil
		case <-t.R.Progress:
			watch.Moved()
		case <-watch.C():
			if err := watch.Bark(); err != nil {
				return rerr, done, t.stalled(err)
			}
		case <-ctx.Done():
			return rerr, done, context.Cause(ctx)
		}
	}
}

// judge says what came of a turn that nobody stopped.
func judge(t *Turn, r Reader, rerr error, e turn.Exit) error {
	if err := broken(rerr); err != nil {
		if errors.Is(rerr, io.ErrUnexpectedEOF) && e.Itself && e.Code != 0 { // the end of the process explains the cut
			return t.Died(e)
		}
		return err
	}
	if err := r.End(e); err != nil {
		return err
	}
	return t.R.Answered()
}
