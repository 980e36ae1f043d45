package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"witan/kernel"
)

// driver works on one run. Everything in it belongs to its loop goroutine
// except inbox and done.
type driver struct {
	e     *Engine
	s     *kernel.State
	plan  kernel.Plan
	live  *Live
	inbox chan any
	done  chan struct{}
	err   error // set before done is closed

	asking   map[kernel.GateID][]chan kernel.Answer // who waits for an answer
	inflight map[kernel.AttemptID]kernel.Usage      // of running attempts
	calls    map[kernel.AttemptID]int               // tool calls of running attempts

	open   map[uint64]openStage // outstanding requests by seq of stage.started
	batch  []kernel.Record      // folded in and not yet appended; the next append takes them along
	after  []func() error       // what to do once they are durable
	resend time.Duration
	wait   time.Time // from Next
}

// openStage is a request that has no result yet.
type openStage struct {
	attempt kernel.AttemptID
	stage   string
	cause   string // "" or why it was asked to stop
}

// What a driver can be told.
type (
	resultMsg struct {
		seq  uint64
		body json.RawMessage
	}
	noteMsg struct {
		attempt kernel.AttemptID
		stage   string
		kind    kernel.RecordKind
		body    any
		reply   chan error
	}
	stopMsg struct {
		body  kernel.StopBody
		reply chan error
	}
	retryMsg struct {
		body  kernel.ResumedBody
		reply chan error
	}
	interruptMsg struct{}
)

const (
	resendFirst = 100 * time.Millisecond
	resendMost  = 5 * time.Second
)

func newDriver(e *Engine, s *kernel.State, plan kernel.Plan, recs []kernel.Record) *driver {
	d := &driver{e: e, s: s, plan: plan, live: newLive(recs), inbox: make(chan any, 16), done: make(chan struct{}),
		open: map[uint64]openStage{}, resend: resendFirst, asking: map[kernel.GateID][]chan kernel.Answer{}, inflight: map[kernel.AttemptID]kernel.Usage{}, calls: map[kernel.AttemptID]int{}}
	d.adopt()
	return d
}

// adopt takes over the stages that an earlier driver of the run left open.
func (d *driver) adopt() {
	take := func(id kernel.AttemptID, stage string, st *kernel.StageState) {
		if st.Open() {
			d.open[st.Started] = openStage{attempt: id, stage: stage}
		}
	}
	take("", "freeze", &d.s.Freeze)
	take("", "commit", &d.s.Commit)
	for _, p := range d.s.Phases {
		for _, sl := range p.Slots {
			for _, a := range sl.Attempts {
				take(a.ID, "deliver", &a.Deliver)
				take(a.ID, "invoke", &a.Invoke)
				take(a.ID, "receipt", &a.Receipt)
				take(a.ID, "verify", &a.Verify)
				take(a.ID, "commit", &a.Commit)
			}
		}
	}
}

// send hands m to the loop; it reports whether the loop took it.
func (d *driver) send(ctx context.Context, m any) bool {
	select {
	case d.inbox <- m:
		return true
	case <-d.done:
		return false
	case <-ctx.Done():
		return false
	}
}

// loop advances the run until it ends or a store refuses.
func (d *driver) loop(ctx context.Context) {
	defer d.live.close()
	d.request(ctx)
	for {
		if err := d.advance(ctx); err != nil {
			d.park(err)
			return
		}
		if d.s.Finished != nil {
			return
		}
		timer, stop := d.timer()
		select {
		case m := <-d.inbox:
			d.resend = resendFirst
			if err := d.handle(ctx, m); err != nil {
				stop()
				d.park(err)
				return
			}
		case <-timer:
			d.resend = min(2*d.resend, resendMost)
			d.request(ctx)
		case <-ctx.Done():
			stop()
			d.err = context.Cause(ctx)
			return
		}
		stop()
	}
}

// timer fires when a back-off runs out or outstanding requests should be
// repeated; with neither there is none.
func (d *driver) timer() (<-chan time.Time, func()) {
	wait := time.Duration(-1)
	if len(d.open) > 0 {
		wait = d.resend
	}
	if !d.wait.IsZero() {
		if w := max(0, d.wait.Sub(d.e.Clock.Now())); wait < 0 || w < wait {
			wait = w
		}
	}
	if wait < 0 {
		return nil, func() {}
	}
	return d.e.Clock.After(wait)
}

// park ends the driver at the last durable record; resume goes on from there.
func (d *driver) park(err error) {
	d.err = err
	d.e.Log.Error("run parked", "run", d.s.Run, "err", err)
	for seq := range d.open {
		d.e.exec.cancel(key{d.s.Run, seq}, errHostClosing)
	}
}

// advance does all steps that can be done now, in one append.
func (d *driver) advance(ctx context.Context) error {
	head, recs := d.s.Head, d.batch
	if len(recs) > 0 {
		head = kernel.Head{Seq: recs[0].Seq - 1, Hash: recs[0].Prev}
	}
	var started []uint64
	for d.wait = (time.Time{}); ; {
		a := kernel.Next(d.s, d.plan, d.e.Clock.Now())
		if a.Wait || !a.WaitUntil.IsZero() {
			d.wait = a.WaitUntil
			break
		}
		r, err := d.record(ctx, a)
		if err != nil {
			return err
		}
		if r, err = d.apply(r); err != nil {
			return err
		}
		recs = append(recs, r)
		if a.Start != "" {
			d.open[r.Seq] = openStage{attempt: a.Attempt, stage: a.Start}
			started = append(started, r.Seq)
		}
	}
	if len(recs) == 0 {
		return nil
	}
	after := d.after
	d.batch, d.after = nil, nil
	if err := d.append(ctx, head, recs); err != nil {
		return err
	}
	for _, f := range after {
		if err := f(); err != nil {
			return err
		}
	}
	for _, seq := range started {
		d.publish(ctx, TopicRequest, seq, nil)
	}
	return nil
}

// record turns an action into a record, doing the I/O that needs to come first.
func (d *driver) record(ctx context.Context, a kernel.Action) (kernel.Record, error) {
	if a.Start != "" {
		in := a.InDigest
		if a.In != nil {
			var err error
			if in, err = kernel.PutObject(ctx, d.e.Packs, a.Start+".in", a.In); err != nil {
				return kernel.Record{}, err
			}
		}
		v := 0
		if n, ok := d.e.Registry.Lookup(a.Ref.Use); ok {
			v = n.Spec().Version
		}
		return d.newRecord(kernel.StageStarted, a.Attempt, a.Start, kernel.StageStartedBody{Impl: a.Ref.Use, In: in, Version: v})
	}
	body, err := d.enrich(ctx, a)
	if err != nil {
		return kernel.Record{}, err
	}
	return d.newRecord(a.Kind, a.Attempt, "", body)
}

// enrich fills in what only the stores know: dispatch numbers and sessions.
func (d *driver) enrich(ctx context.Context, a kernel.Action) (any, error) {
	switch b := a.Body.(type) {
	case kernel.PhaseStartedBody:
		claim := fmt.Sprintf("%s/%s/%d", d.s.Run, b.Phase, b.Round)
		if b.First > 0 {
			claim += fmt.Sprintf("/%d", b.First)
		}
		first, err := d.e.Conversations.ReserveTurns(ctx, d.s.Created.Conversation, claim, len(b.Slots))
		if err != nil {
			return nil, err
		}
		for i := range b.Slots {
			b.Slots[i].TurnSeq = first + uint64(i)
		}
		return b, nil
	case kernel.AttemptBody:
		if a.Kind == kernel.AttemptQueued && d.s.Created.Plan != "batch" {
			return d.session(ctx, b)
		}
	}
	return a.Body, nil
}

// session says whether the agent's native session goes on (SPEC A3). A session is
// of one folder: a turn that gets a folder of its own has none to go on with.
func (d *driver) session(ctx context.Context, b kernel.AttemptBody) (any, error) {
	ph := d.s.Phase()
	write := ph.Slots[b.Slot-ph.First].Write
	if write && !d.s.Created.InPlace || !write && !d.s.Candidate().IsZero() {
		return b, nil
	}
	s, err := d.e.Conversations.Session(ctx, d.s.Created.Conversation, kernel.SessionOwner(d.s.Created.Plan, b.Agent, d.s.Run))
	switch {
	case kernel.IsKind(err, kernel.NotFound):
		b.Rebuilt = b.Try > 1 && lastClass(d.s, b) == kernel.ClassSession
	case err != nil:
		return nil, err
	case s.Workspace == d.s.Created.Workspace && (s.Host == "" || s.Host == d.e.Instance):
		b.Continue, b.Seen = true, s.Seen
	default:
		b.Rebuilt = true
	}
	return b, nil
}

func lastClass(s *kernel.State, b kernel.AttemptBody) string {
	if at := s.Phase().Slots[b.Slot-s.Phase().First].Last(); at != nil && at.Finished != nil {
		return at.Finished.Class
	}
	return ""
}

func (d *driver) newRecord(kind kernel.RecordKind, at kernel.AttemptID, stage string, body any) (kernel.Record, error) {
	b, err := kernel.Canonical(body)
	if err != nil {
		return kernel.Record{}, err
	}
	return kernel.Record{Run: d.s.Run, At: d.e.Clock.Now(), Kind: kind, Attempt: at, Stage: stage, Body: b}, nil
}

// apply links r to the state's head and folds it in.
func (d *driver) apply(r kernel.Record) (kernel.Record, error) {
	linked, _, _, err := kernel.Chain(d.s.Head, []kernel.Record{r})
	if err != nil {
		return r, err
	}
	return linked[0], d.s.Apply(linked[0])
}

// append makes recs durable and shows them. The state already holds them; when
// the ledger refuses, the driver ends and the state is thrown away.
func (d *driver) append(ctx context.Context, head kernel.Head, recs []kernel.Record) error {
	if d.e.BeforeAppend != nil {
		d.e.BeforeAppend(recs)
	}
	ctx = context.WithoutCancel(ctx)
	_, got, err := d.e.Ledger.Append(ctx, kernel.Batch{Run: d.s.Run, Expect: head, Records: recs, Summary: d.s.Summary()})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(got, boundary) {
		if err := d.e.Ledger.Witness(ctx); err != nil {
			return err
		}
	}
	d.live.records(got)
	d.show(ctx)
	for _, r := range got {
		if err := d.react(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// boundary says after which records the witness is made durable. It is written
// at every append; what a power failure can take from it is one attempt's stages.
func boundary(r kernel.Record) bool {
	switch r.Kind {
	case kernel.SnapshotFrozen, kernel.AttemptFinished, kernel.PhaseFinished, kernel.CommitRec, kernel.RunFinished:
		return true
	}
	return false
}

// show hints to views that there is something new.
func (d *driver) show(ctx context.Context) {
	_ = d.e.View.Publish(ctx, kernel.Signal{Topic: TopicView, Run: d.s.Run, Seq: d.s.Head.Seq, Key: string(d.s.Run)})
}

// request publishes every outstanding request and cancellation (again).
func (d *driver) request(ctx context.Context) {
	for seq, o := range d.open {
		d.publish(ctx, TopicRequest, seq, nil)
		if o.cause != "" {
			d.publishCancel(ctx, seq, o.cause)
		}
	}
}

func (d *driver) publishCancel(ctx context.Context, seq uint64, cause string) {
	b, _ := json.Marshal(cause)
	d.publish(ctx, TopicCancel, seq, b)
}

func (d *driver) publish(ctx context.Context, topic string, seq uint64, body json.RawMessage) {
	// A signal that could not be sent is sent again by the timer.
	if err := d.e.Control.Publish(ctx, kernel.Signal{Topic: topic, Run: d.s.Run, Seq: seq, Body: body}); err != nil {
		d.e.Log.Debug("signal not sent", "run", d.s.Run, "topic", topic, "err", err)
	}
}
