package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"witan/kernel"
	"witan/kernel/plans"
)

// Topics of the buses.
const (
	TopicRequest = "stage.request" // control: run, seq of stage.started
	TopicCancel  = "stage.cancel"  // control: run, seq of stage.started, body = cause
	TopicResult  = "stage.result"  // control: run, seq of stage.started, body = kernel.StageEndBody
	TopicView    = "view"          // view: run, seq of the last record, key = run
)

// Deps is everything the engine works with.
type Deps struct {
	Ledger        kernel.Ledger
	Packs         kernel.Packs
	Conversations kernel.Conversations
	Streams       kernel.Streams
	Control       kernel.Bus
	View          kernel.Bus
	Registry      kernel.Registry
	Plans         plans.List
	Clock         kernel.Clock
	NewID         func(prefix string) (string, error)
	Log           *slog.Logger
	Output        func(kernel.RunID) string // folder for agents' output of a run; nil = none
	Instance      string                    // names this host; a session kept in memory is of one host only

	// BeforeAppend is called before each append with the records about to be
	// written; crash tests end the process in it. Nil in production.
	BeforeAppend func([]kernel.Record)
}

// Engine owns all active runs of one host.
type Engine struct {
	Deps
	exec *executor

	mu      sync.Mutex
	drivers map[kernel.RunID]*driver // guarded by mu; active runs only
	closed  bool                     // guarded by mu
	wg      sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stops   []func()
}

var (
	errStopped     = errors.New("stopped by the person")
	errHostClosing = errors.New("the host is closing")
	errGate        = errors.New("parked until a gate is answered")
	errBudget      = errors.New("a budget is exhausted")
)

// New wires an engine. Start must be called before anything else.
func New(d Deps) *Engine {
	e := &Engine{Deps: d, drivers: map[kernel.RunID]*driver{}}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.exec = newExecutor(e)
	return e
}

// Start subscribes to the control bus and turns runs that a dead host left
// behind into interrupted ones. It returns their ids.
func (e *Engine) Start(ctx context.Context) ([]kernel.RunID, error) {
	for topic, h := range map[string]func(context.Context, kernel.Signal){
		TopicRequest: e.exec.onRequest, TopicCancel: e.exec.onCancel, TopicResult: e.onResult,
	} {
		stop, err := e.Control.Subscribe(topic, h)
		if err != nil {
			return nil, err
		}
		e.stops = append(e.stops, stop)
	}
	return e.recover(ctx)
}

// onResult hands a stage's result to the driver of its run.
func (e *Engine) onResult(ctx context.Context, s kernel.Signal) {
	if d := e.driver(s.Run); d != nil {
		d.send(ctx, resultMsg{seq: s.Seq, body: s.Body})
	}
}

func (e *Engine) driver(run kernel.RunID) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drivers[run]
}

// Active reports whether this host works on the run.
func (e *Engine) Active(run kernel.RunID) bool { return e.driver(run) != nil }

// ActiveRuns lists the runs being worked on.
func (e *Engine) ActiveRuns() []kernel.RunID {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]kernel.RunID, 0, len(e.drivers))
	for r := range e.drivers {
		out = append(out, r)
	}
	return out
}

// launch starts a driver on a folded run.
func (e *Engine) launch(s *kernel.State, recs []kernel.Record) (*driver, error) {
	plan, err := e.Plans.Find(s.Created.Plan)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, kernel.E("engine.launch", kernel.Unavailable, nil, "the host is closing").WithNext("try again")
	}
	if e.drivers[s.Run] != nil {
		return nil, kernel.E("engine.launch", kernel.Conflict, nil, "run %s is already being worked on", s.Run)
	}
	d := newDriver(e, s, plan, recs)
	e.drivers[s.Run] = d
	e.wg.Go(func() {
		d.loop(e.ctx)
		e.mu.Lock()
		delete(e.drivers, s.Run)
		e.mu.Unlock()
		e.exec.forget(s.Run)
		close(d.done)
	})
	return d, nil
}

// Wait blocks until the run is not being worked on any more.
func (e *Engine) Wait(ctx context.Context, run kernel.RunID) error {
	d := e.driver(run)
	if d == nil {
		return nil
	}
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close interrupts what is running, gives it until ctx ends to be recorded, and
// releases everything. Runs that did not make it are found by the next Start.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	ds := make([]*driver, 0, len(e.drivers))
	for _, d := range e.drivers {
		ds = append(ds, d)
	}
	e.mu.Unlock()
	for _, d := range ds {
		d.send(ctx, interruptMsg{})
	}
	for _, d := range ds {
		select {
		case <-d.done:
		case <-ctx.Done():
		}
	}
	e.cancel(errHostClosing)
	e.wg.Wait()
	e.exec.wait()
	for _, stop := range e.stops {
		stop()
	}
	return nil
}

// load reads and folds a run.
func (e *Engine) load(ctx context.Context, run kernel.RunID) (*kernel.State, []kernel.Record, error) {
	s := kernel.NewState(run)
	var recs []kernel.Record
	for r, err := range e.Ledger.Read(ctx, run, 1) {
		if err != nil {
			return nil, nil, err
		}
		if err := s.Apply(r); err != nil {
			return nil, nil, err
		}
		recs = append(recs, r)
	}
	if s.Head.Seq == 0 {
		return nil, nil, kernel.E("engine.load", kernel.NotFound, nil, "run %s has no records", run)
	}
	return s, recs, nil
}

// Load returns the folded run and its records, for reading.
func (e *Engine) Load(ctx context.Context, run kernel.RunID) (*kernel.State, []kernel.Record, error) {
	return e.load(ctx, run)
}

func since(t0, t1 time.Time) int64 { return max(0, t1.Sub(t0).Milliseconds()) }
