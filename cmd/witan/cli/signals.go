package cli

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"witan/cmd/internal/host"
	"witan/kernel"
)

// errInterrupt is the cause of a context that a person ended.
var errInterrupt = kernel.E("cli", kernel.Cancelled, nil, "interrupted")

// signals gives a context that ends at the first interrupt or terminate; the
// second one ends the process the hard way.
func signals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	go func() {
		select {
		case <-c:
			cancel(errInterrupt)
			signal.Stop(c) // from now on the default action
		case <-quit:
		}
	}()
	return ctx, func() { signal.Stop(c); close(quit) }
}

// tracker remembers of a stream what is needed to stop it and to judge it.
type tracker struct {
	mu     sync.Mutex
	run    string
	status kernel.RunStatus
	reason string
	known  chan struct{} // closed when run is set
}

func (t *tracker) ready() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(chan struct{})
	}
	return t.known
}

func (t *tracker) line(l json.RawMessage) {
	var v struct {
		Type   string           `json:"type"`
		Run    string           `json:"run"`
		Status kernel.RunStatus `json:"status"`
		Reason string           `json:"reason"`
	}
	_ = json.Unmarshal(l, &v)
	ready := t.ready()
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.Run != "" && t.run == "" {
		t.run = v.Run
		close(ready)
	}
	if v.Type == "run.finished" {
		t.status, t.reason = v.Status, v.Reason
	}
	if v.Type == "run.resumed" {
		t.status = ""
	}
}

func (t *tracker) end() (kernel.RunStatus, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status == "" {
		return kernel.RunRunning, ""
	}
	return t.status, t.reason
}

// onInterrupt asks the run to stop when ctx ends; the stream then ends by
// itself. The returned func releases it.
func onInterrupt(ctx context.Context, c caller, t *tracker, cancel context.CancelCauseFunc) func() {
	quit := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-quit:
			return
		}
		select {
		case <-t.ready():
		case <-quit:
			return
		}
		t.mu.Lock()
		run := t.run
		t.mu.Unlock()
		err := c.Call(context.WithoutCancel(ctx), "stop", host.RunRef{Run: run}, func(json.RawMessage) error { return nil })
		if err != nil {
			cancel(err)
		}
	}()
	return func() { close(quit); <-done }
}
