package engine

import (
	"context"
	"slices"
	"strconv"

	"witan/kernel"
)

// What a driver can be told about gates and budgets.
type (
	askMsg struct {
		attempt  kernel.AttemptID
		question kernel.Question
		reply    chan asked
	}
	decideMsg struct {
		body  kernel.DecidedBody
		reply chan error
	}
	adoptMsg struct {
		body  kernel.AdoptionBody
		reply chan error
	}
	usageMsg struct {
		attempt kernel.AttemptID
		usage   kernel.Usage
	}
	toolsMsg struct {
		attempt kernel.AttemptID
		calls   int // of the attempt so far
	}
)

// asked is a gate's answer, or where it will arrive.
type asked struct {
	answer kernel.Answer
	later  chan kernel.Answer
	err    error
}

// question puts a question of an attempt and waits for its answer.
func (d *driver) question(ctx context.Context, at kernel.AttemptID, q kernel.Question) (kernel.Answer, error) {
	gone := kernel.E("engine.question", kernel.Cancelled, nil, "the turn is over")
	m := askMsg{at, q, make(chan asked, 1)}
	if !d.send(ctx, m) {
		return kernel.Answer{}, gone
	}
	var a asked
	select {
	case a = <-m.reply:
	case <-d.done:
		return kernel.Answer{}, gone
	}
	if a.err != nil || a.later == nil {
		return a.answer, a.err
	}
	select {
	case ans := <-a.later:
		return ans, nil
	case <-ctx.Done():
		return kernel.Answer{}, context.Cause(ctx)
	case <-d.done:
		return kernel.Answer{}, gone
	}
}

// onAsk opens the gate of a question, or finds it. With nobody to wait for the
// run parks: what asks is ended, the gate stays.
func (d *driver) onAsk(ctx context.Context, m askMsg) error {
	at := d.s.Attempt(m.attempt)
	if at == nil || at.Finished != nil || d.s.Stopping || d.s.Interrupted {
		m.reply <- asked{err: kernel.E("engine.onAsk", kernel.Cancelled, nil, "attempt %s is over", m.attempt)}
		return nil
	}
	if m.question.Kind == kernel.GatePermission {
		if g, ok := d.s.Granted(at.Body.Agent, m.question.Key); ok {
			dec := d.s.Gate(g).Decision
			m.reply <- asked{answer: kernel.Answer{Option: dec.Option, By: dec.By, Gate: g}}
			return nil
		}
	}
	g := d.s.FindGate(at, m.question)
	if g != nil && g.Decision != nil {
		return d.give(ctx, at.ID, g, m.reply)
	}
	if g == nil {
		b := gateOf(d.s, at, m.question)
		if err := d.external(ctx, kernel.GateOpened, at.ID, "", b); err != nil {
			m.reply <- asked{err: err}
			return err
		}
		g = d.s.Gate(b.Gate)
	}
	if g.Decision != nil { // answered as it was opened
		return d.give(ctx, at.ID, g, m.reply)
	}
	later := make(chan kernel.Answer, 1)
	d.asking[g.Gate] = append(d.asking[g.Gate], later)
	m.reply <- asked{later: later}
	if d.s.Parked() {
		d.cancelOpen(ctx, "gate", func(o openStage) bool { return o.attempt == at.ID && o.stage == "invoke" })
	}
	return nil
}

// give hands an answer to the attempt that asks, once.
func (d *driver) give(ctx context.Context, at kernel.AttemptID, g *kernel.Gate, reply chan asked) error {
	if !g.Used {
		if err := d.external(ctx, kernel.GateUsed, at, "", kernel.GateUsedBody{Gate: g.Gate}); err != nil {
			reply <- asked{err: err}
			return err
		}
	}
	reply <- asked{answer: answerOf(g)}
	return nil
}

func answerOf(g *kernel.Gate) kernel.Answer {
	return kernel.Answer{Option: g.Decision.Option, Text: g.Decision.Text, By: g.Decision.By, Gate: g.Gate}
}

// gateOf names a question by its slot, what it is about and how often that was
// asked there before.
func gateOf(s *kernel.State, at *kernel.Attempt, q kernel.Question) kernel.GateBody {
	n := 0
	sl := s.SlotOf(at.ID)
	for _, g := range s.Gates {
		if prev := s.Attempt(g.Attempt); g.Key == q.Key && prev != nil && slices.Contains(sl.Attempts, prev) {
			n++
		}
	}
	id := kernel.NewGateID(s.Run, q.Kind, at.Body.Phase, strconv.Itoa(at.Body.Round), strconv.Itoa(at.Body.Slot), q.Key.String(), strconv.Itoa(n))
	return kernel.GateBody{Gate: id, Kind: q.Kind, Summary: clip(q.Summary, 2000), Target: clip(q.Target, 2000), Options: q.Options, Key: q.Key, Request: clip(q.Request, 200)}
}

// revoke is the word that takes back what an answer allowed for the run.
const revoke = "revoke"

// onDecide records an answer. The same answer again is nothing new, another one
// is a conflict.
func (d *driver) onDecide(ctx context.Context, b kernel.DecidedBody) error {
	if b.Option == revoke {
		if err := revocable(d.s, b.Gate); err != nil {
			return err
		}
		return d.external(ctx, kernel.GateRevoked, "", "", kernel.RevokedBody{By: b.By, Gate: b.Gate})
	}
	g, fresh, err := decidable(d.s, b)
	if err != nil || !fresh {
		return err
	}
	return d.external(ctx, kernel.GateDecided, g.Attempt, "", b)
}

func revocable(s *kernel.State, id kernel.GateID) error {
	if g := s.Gate(id); g == nil || !g.Grant() {
		return kernel.E("engine.Decide", kernel.Invalid, nil, "gate %s allows nothing for its run", id).WithNext("see witan gates --grants")
	}
	return nil
}

// decidable checks an answer against its gate; fresh is false when it is on
// record already.
func decidable(s *kernel.State, b kernel.DecidedBody) (g *kernel.Gate, fresh bool, err error) {
	const op = "engine.Decide"
	g = s.Gate(b.Gate)
	switch {
	case g == nil:
		return nil, false, kernel.E(op, kernel.NotFound, nil, "gate %s is unknown", b.Gate).WithNext("see witan gates")
	case !g.Offers(b.Option):
		var ids []string
		for _, o := range g.Options {
			ids = append(ids, o.ID)
		}
		return nil, false, kernel.E(op, kernel.Invalid, nil, "gate %s does not offer %q", b.Gate, b.Option).WithNext("use one of %v", ids)
	case g.Decision == nil && b.Text == "" && g.Wants(b.Option):
		return nil, false, kernel.E(op, kernel.Invalid, nil, "gate %s wants words", b.Gate).WithNext("say them with --text")
	case g.Decision == nil:
		return g, true, nil
	case g.Decision.Option == b.Option && g.Decision.Text == b.Text:
		return g, false, nil
	}
	return nil, false, kernel.E(op, kernel.Conflict, nil, "gate %s was answered %q by %s", b.Gate, g.Decision.Option, g.Decision.By).
		WithNext("see witan run-show %s", s.Run)
}

// onUsage counts what a running attempt has used; past a hard budget the run ends now.
func (d *driver) onUsage(ctx context.Context, m usageMsg) error {
	if at := d.s.Attempt(m.attempt); at == nil || at.Finished != nil || d.s.Tripped != nil {
		return nil
	}
	d.inflight[m.attempt] = m.usage
	var sum kernel.Usage
	first := true
	for _, u := range d.inflight {
		if first {
			sum, first = u, false
			continue
		}
		sum = sum.Add(u)
	}
	name, v, over := d.s.Over(d.e.Clock.Now(), sum)
	if !over || name == "attempts" {
		return nil
	}
	return d.trip(ctx, name, v)
}

// onTools counts the tool calls of running attempts. Unlike tokens, which come
// in lumps, the call that reaches the limit may still be made.
func (d *driver) onTools(ctx context.Context, m toolsMsg) error {
	if at := d.s.Attempt(m.attempt); at == nil || at.Finished != nil || d.s.Tripped != nil || !at.Invoke.Open() {
		return nil
	}
	d.calls[m.attempt] = m.calls
	n := d.s.Tools
	for _, c := range d.calls {
		n += c
	}
	if l, is := d.s.Created.Budget["tool_calls"]; is && !l.Soft && int64(n) > l.Limit {
		return d.trip(ctx, "tool_calls", int64(n))
	}
	return nil
}

// trip ends the run now: a hard budget was passed in flight.
func (d *driver) trip(ctx context.Context, name string, v int64) error {
	if err := d.external(ctx, kernel.BudgetTripped, "", "", kernel.TrippedBody{Limit: name, Value: v}); err != nil {
		return err
	}
	d.cancelOpen(ctx, "budget", func(o openStage) bool { return o.stage == "invoke" })
	return nil
}

// react does what follows from a record once it is durable.
func (d *driver) react(ctx context.Context, r kernel.Record) error {
	switch r.Kind {
	case kernel.BudgetTripped:
		if d.s.Tripped != nil && d.s.Tripped.Limit == "elapsed" {
			d.cancelOpen(ctx, "budget", func(o openStage) bool { return o.stage == "invoke" })
		}
	case kernel.GateDecided:
		var b kernel.DecidedBody
		if err := kernel.DecodeStrict(r.Body, &b); err != nil {
			return err
		}
		waiting := d.asking[b.Gate]
		delete(d.asking, b.Gate)
		if g := d.s.Gate(b.Gate); len(waiting) > 0 && g != nil {
			for _, c := range waiting {
				c <- answerOf(g)
			}
			if !g.Used {
				return d.external(ctx, kernel.GateUsed, g.Attempt, "", kernel.GateUsedBody{Gate: g.Gate})
			}
		}
	}
	return nil
}

// OpenGate is a gate that waits, with its run.
type OpenGate struct {
	Run   kernel.RunID
	Agent kernel.AgentID // who asks; "" is the run itself
	Gate  kernel.Gate
}

// Gates lists what waits for a person, oldest run first.
func (e *Engine) Gates(ctx context.Context) ([]OpenGate, error) {
	var out []OpenGate
	for sum, err := range e.Ledger.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		if sum.Gates == 0 {
			continue
		}
		s, _, err := e.load(ctx, sum.Run)
		if err != nil {
			return nil, err
		}
		for _, g := range slices.Backward(s.OpenGates()) {
			o := OpenGate{Run: sum.Run, Gate: *g}
			if at := s.Attempt(g.Attempt); at != nil {
				o.Agent = at.Body.Agent
			}
			out = append(out, o)
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Grants lists what answers allow for runs that are not completed.
func (e *Engine) Grants(ctx context.Context) ([]OpenGate, error) {
	var out []OpenGate
	for sum, err := range e.Ledger.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		if sum.Status == kernel.RunCompleted {
			continue
		}
		s, _, err := e.load(ctx, sum.Run)
		if err != nil {
			continue // ledger verify names it
		}
		for _, g := range slices.Backward(s.Gates) {
			if g.Grant() {
				out = append(out, OpenGate{Run: sum.Run, Agent: s.Attempt(g.Attempt).Body.Agent, Gate: *g})
			}
		}
	}
	slices.Reverse(out)
	return out, nil
}

// Decide answers a gate, durably before it returns. The run of a gate that was
// answered goes on by itself while it is being worked on, else with a resume.
func (e *Engine) Decide(ctx context.Context, b kernel.DecidedBody) (kernel.RunID, error) {
	run, ok := kernel.RunOfGate(b.Gate)
	unknown := kernel.E("engine.Decide", kernel.NotFound, nil, "gate %s is unknown", b.Gate).WithNext("see witan gates")
	if !ok {
		return "", unknown
	}
	if d := e.driver(run); d != nil {
		reply := make(chan error, 1)
		err := d.ask(ctx, decideMsg{b, reply}, reply)
		if !kernel.IsKind(err, kernel.Unavailable) {
			return run, err
		}
	}
	s, _, err := e.load(ctx, run)
	if kernel.IsKind(err, kernel.NotFound) {
		return "", unknown
	}
	if err != nil {
		return run, err
	}
	if b.Option == revoke {
		if err := revocable(s, b.Gate); err != nil {
			return run, err
		}
		return run, e.amend(ctx, s, kernel.GateRevoked, "", kernel.RevokedBody{By: b.By, Gate: b.Gate})
	}
	g, fresh, err := decidable(s, b)
	if err != nil || !fresh {
		return run, err
	}
	return run, e.amend(ctx, s, kernel.GateDecided, g.Attempt, b)
}

// Adopt records what became of an outcome of a run, ended or not.
func (e *Engine) Adopt(ctx context.Context, run kernel.RunID, b kernel.AdoptionBody) error {
	if d := e.driver(run); d != nil {
		reply := make(chan error, 1)
		err := d.ask(ctx, adoptMsg{b, reply}, reply)
		if !kernel.IsKind(err, kernel.Unavailable) {
			return err
		}
	}
	s, _, err := e.load(ctx, run)
	if err != nil {
		return err
	}
	return e.amend(ctx, s, kernel.AdoptionRec, "", b)
}

// amend appends one record to a run that nobody works on.
func (e *Engine) amend(ctx context.Context, s *kernel.State, kind kernel.RecordKind, at kernel.AttemptID, body any) error {
	d := &driver{e: e, s: s}
	r, err := d.newRecord(kind, at, "", body)
	if err != nil {
		return err
	}
	head := s.Head
	if r, err = d.apply(r); err != nil {
		return err
	}
	if e.BeforeAppend != nil {
		e.BeforeAppend([]kernel.Record{r})
	}
	if _, _, err = e.Ledger.Append(ctx, kernel.Batch{Run: s.Run, Expect: head, Records: []kernel.Record{r}, Summary: s.Summary()}); err != nil {
		return err
	}
	return e.Ledger.Witness(ctx)
}
