package engine

import (
	"context"
	"encoding/json"
	"strings"

	"witan/kernel"
)

// handle does what a message asks for. An error ends the driver.
func (d *driver) handle(ctx context.Context, m any) error {
	switch m := m.(type) {
	case resultMsg:
		return d.onResult(ctx, m)
	case noteMsg:
		err := d.onNote(ctx, m)
		m.reply <- err
		return storeError(err)
	case stopMsg:
		err := d.onStop(ctx, m.body)
		m.reply <- err
		return storeError(err)
	case retryMsg:
		err := d.external(ctx, kernel.RunResumed, "", "", m.body)
		m.reply <- err
		return storeError(err)
	case askMsg:
		return storeError(d.onAsk(ctx, m))
	case decideMsg:
		err := d.onDecide(ctx, m.body)
		m.reply <- err
		return storeError(err)
	case adoptMsg:
		err := d.external(ctx, kernel.AdoptionRec, "", "", m.body)
		m.reply <- err
		return storeError(err)
	case usageMsg:
		return storeError(d.onUsage(ctx, m))
	case toolsMsg:
		return storeError(d.onTools(ctx, m))
	case interruptMsg:
		if err := d.external(ctx, kernel.RunInterrupted, "", "", kernel.InterruptedBody{Reason: "host_closing"}); err != nil {
			return err
		}
		d.cancelOpen(ctx, "interrupted", func(openStage) bool { return true })
	}
	return nil
}

// storeError keeps the errors after which the ledger cannot be written any more.
func storeError(err error) error {
	switch kernel.KindOf(err) {
	case kernel.Invalid, kernel.Cancelled, kernel.NotFound, kernel.Conflict:
		return nil
	}
	return err
}

// external appends a record that somebody else decided on.
func (d *driver) external(ctx context.Context, kind kernel.RecordKind, at kernel.AttemptID, stage string, body any) error {
	r, err := d.newRecord(kind, at, stage, body)
	if err != nil {
		return err
	}
	head := d.s.Head
	if r, err = d.apply(r); err != nil {
		return err
	}
	return d.append(ctx, head, []kernel.Record{r})
}

// onResult journals the end of a stage with what follows from its output.
func (d *driver) onResult(ctx context.Context, m resultMsg) error {
	o, ok := d.open[m.seq]
	if !ok {
		return nil // repeated
	}
	var end kernel.StageEndBody
	if err := kernel.DecodeStrict(m.body, &end); err != nil {
		return err
	}
	kind := kernel.StageFinished
	if end.Class != "" {
		kind = kernel.StageFailed
	}
	r, err := d.newRecord(kind, o.attempt, o.stage, end)
	if err != nil {
		return err
	}
	recs := []kernel.Record{r}
	if kind == kernel.StageFailed && o.stage == "receipt" {
		rej, err := d.newRecord(kernel.ReceiptRejected, o.attempt, "", kernel.RejectedBody{Code: end.Reason})
		if err != nil {
			return err
		}
		recs = append(recs, rej)
	}
	delete(d.inflight, o.attempt)
	delete(d.calls, o.attempt)
	if kind == kernel.StageFinished {
		more, err := d.derive(ctx, o, end)
		if err != nil {
			return err
		}
		recs = append(recs, more...)
	}
	for i := range recs {
		if recs[i], err = d.apply(recs[i]); err != nil {
			return err
		}
	}
	delete(d.open, m.seq)
	// Appended by advance, together with the step that follows: one sync for both.
	d.batch = append(d.batch, recs...)
	d.after = append(d.after, func() error {
		d.e.exec.release(key{d.s.Run, m.seq})
		if o.stage != "invoke" {
			return nil
		}
		d.live.drop(o.attempt)
		return d.e.Streams.DropStream(context.WithoutCancel(ctx), o.attempt)
	})
	return nil
}

// onNote appends a stage's own record, durable before the stage goes on.
func (d *driver) onNote(ctx context.Context, m noteMsg) error {
	at := d.s.Attempt(m.attempt)
	if at == nil || at.Finished != nil {
		return kernel.E("engine.onNote", kernel.Cancelled, nil, "attempt %s is over", m.attempt)
	}
	if m.kind == kernel.DeliverySent && (d.s.Stopping || d.s.Interrupted) {
		return kernel.E("engine.onNote", kernel.Cancelled, nil, "the run is stopping")
	}
	return d.external(ctx, m.kind, m.attempt, m.stage, m.body)
}

func (d *driver) onStop(ctx context.Context, b kernel.StopBody) error {
	if b.Agent != "" && !d.has(b.Agent) {
		return kernel.E("engine.Stop", kernel.NotFound, nil, "agent %q is not working in run %s", b.Agent, d.s.Run).
			WithNext("see witan run-show %s", d.s.Run)
	}
	if b.Agent == "" && d.s.Stopping {
		return nil
	}
	if err := d.external(ctx, kernel.StopRequested, "", "", b); err != nil {
		return err
	}
	d.cancelOpen(ctx, "stopped", func(o openStage) bool {
		if b.Agent == "" {
			return o.stage != "commit"
		}
		at := d.s.Attempt(o.attempt)
		return at != nil && at.Body.Agent == b.Agent && o.stage != "commit"
	})
	return nil
}

func (d *driver) has(a kernel.AgentID) bool {
	if p := d.s.Phase(); p != nil && !p.Finished {
		for _, sl := range p.Slots {
			if sl.Agent == a {
				return true
			}
		}
	}
	return false
}

func (d *driver) cancelOpen(ctx context.Context, cause string, which func(openStage) bool) {
	for seq, o := range d.open {
		if which(o) && o.cause == "" {
			o.cause = cause
			d.open[seq] = o
			d.publishCancel(ctx, seq, cause)
		}
	}
}

// adopted is what a commit makes of the result.
var adopted = map[string]string{"commit/apply": "applied", "commit/git": "committed"}

// remarker is a plan that says what it could not use of a receipt.
type remarker interface {
	Remark(s *kernel.State, at kernel.AttemptID, receipt json.RawMessage) (kernel.NoticeBody, bool)
}

// derive reads a stage's output and gives the records that people read:
// they are appended together with the end of the stage.
func (d *driver) derive(ctx context.Context, o openStage, end kernel.StageEndBody) ([]kernel.Record, error) {
	var out []kernel.Record
	add := func(kind kernel.RecordKind, body any) error {
		r, err := d.newRecord(kind, o.attempt, "", body)
		if err == nil {
			out = append(out, r)
		}
		return err
	}
	switch o.stage {
	case "receipt":
		c, err := kernel.GetObject[kernel.Claim](ctx, d.e.Packs, end.Out)
		if err != nil {
			return nil, err
		}
		if len(c.Receipt) == 0 {
			if len(c.Dropped) > 0 { // there was one, and nothing of it could be read
				err = add(kernel.ReceiptRejected, kernel.RejectedBody{Code: c.Dropped[0]})
			}
			return out, err
		}
		if len(c.Dropped) > 0 {
			text := "left out of the receipt: " + strings.Join(c.Dropped, ", ")
			if err := add(kernel.NoticeRec, kernel.NoticeBody{Code: "receipt_dropped", Text: clip(text, 1000)}); err != nil {
				return nil, err
			}
		}
		if err := add(kernel.ReceiptRec, kernel.ReceiptBody{Phase: d.s.Attempt(o.attempt).Body.Phase, Receipt: c.Receipt, Source: c.Source}); err != nil {
			return nil, err
		}
		if r, ok := d.plan.(remarker); ok {
			if n, ok := r.Remark(d.s, o.attempt, c.Receipt); ok {
				return out, add(kernel.NoticeRec, n)
			}
		}
		return out, nil
	case "verify":
		v, err := kernel.GetObject[kernel.Verdict](ctx, d.e.Packs, end.Out)
		if err != nil {
			return nil, err
		}
		for _, res := range v.Results {
			if err := add(kernel.VerifyRec, res); err != nil {
				return nil, err
			}
		}
	case "commit":
		res, err := kernel.GetObject[kernel.Result](ctx, d.e.Packs, end.Out)
		if err != nil {
			return nil, err
		}
		if res.Scope == "run" {
			if err := add(kernel.CommitRec, kernel.CommitBody{Commit: res.Commit, Content: res.Content, Impl: end.Impl, Target: res.Target}); err != nil {
				return nil, err
			}
			if state, ok := adopted[end.Impl]; ok && res.Target != "record" {
				return out, add(kernel.AdoptionRec, kernel.AdoptionBody{By: "commit", ID: kernel.OutcomeID(res.Commit), State: state})
			}
			return out, nil
		}
		if m := res.Message; m != nil {
			if err := add(kernel.MessageRec, kernel.MessageBody{Agent: m.Agent, Message: m.ID, Role: m.Role, Status: m.Status, Text: m.Text, TurnSeq: m.TurnSeq}); err != nil {
				return nil, err
			}
		}
		for _, oc := range res.Outcomes {
			if err := add(kernel.RecordKind(oc.Type), oc); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
