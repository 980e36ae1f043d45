package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/kernel/engine"
)

type none struct{}

// ListArgs narrows a list.
type ListArgs struct {
	Conversation string `json:"conversation,omitempty"`
	Archived     bool   `json:"archived,omitempty"`
}

func opRuns(ctx context.Context, h *Host, a ListArgs, emit Emit) error {
	if a.Conversation != "" {
		if _, err := h.conversation(ctx, a.Conversation); err != nil {
			return err
		}
	}
	for s, err := range h.store.Ledger.Summaries(ctx) {
		if err != nil {
			return err
		}
		if a.Conversation != "" && string(s.Conversation) != a.Conversation {
			continue
		}
		if err := give(emit, h.honest(s)); err != nil {
			return err
		}
	}
	return nil
}

func opRunShow(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	sum, err := h.run(ctx, a.Run)
	if err != nil {
		return err
	}
	if err := give(emit, sum); err != nil {
		return err
	}
	l := engine.NewLines(h.store.Packs, kernel.RunID(a.Run))
	for r, err := range h.store.Ledger.Read(ctx, kernel.RunID(a.Run), 1) {
		if err != nil {
			return err
		}
		lines, err := l.Record(ctx, r)
		if err != nil {
			return err
		}
		for _, ln := range lines {
			if err := emit(ln); err != nil {
				return err
			}
		}
	}
	return nil
}

func opConversations(ctx context.Context, h *Host, a ListArgs, emit Emit) error {
	return giveAll(h.store.Conversations.Conversations(ctx), emit)
}

func giveAll[T any](seq iter.Seq2[T, error], emit Emit) error {
	for v, err := range seq {
		if err != nil {
			return err
		}
		if err := give(emit, v); err != nil {
			return err
		}
	}
	return nil
}

// ConversationArgs names a conversation and what to change of it.
type ConversationArgs struct {
	Conversation string `json:"conversation"`
	Title        string `json:"title,omitempty"`
	Archived     bool   `json:"archived,omitempty"`
}

func (h *Host) conversation(ctx context.Context, id string) (kernel.Conversation, error) {
	c, err := h.store.Conversations.Conversation(ctx, kernel.ConversationID(id))
	if kernel.IsKind(err, kernel.NotFound) || !kernel.ValidID(kernel.ConversationPrefix, id) {
		return c, kernel.E("host.conversation", kernel.NotFound, nil, "conversation %q is unknown", id).WithNext("see witan conversations")
	}
	return c, err
}

type attachmentRow struct {
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Display string        `json:"display"`
	Stored  string        `json:"stored"`
	Bytes   int64         `json:"bytes"`
	Hash    kernel.Digest `json:"hash"`
}

type messageRow struct {
	Message     kernel.MessageID `json:"message"`
	Role        string           `json:"role"`
	Agent       kernel.AgentID   `json:"agent"`
	TurnSeq     uint64           `json:"turn_seq"`
	Text        string           `json:"text"`
	Run         kernel.RunID     `json:"run"`
	Status      string           `json:"status"`
	At          time.Time        `json:"at"`
	Attachments []attachmentRow  `json:"attachments"`
}

func opShow(ctx context.Context, h *Host, a ConversationArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	for m, err := range h.store.Conversations.Messages(ctx, c.ID, 0) {
		if err != nil {
			return err
		}
		row, err := h.messageRow(ctx, m)
		if err != nil {
			return err
		}
		if err := give(emit, row); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) messageRow(ctx context.Context, m kernel.Message) (messageRow, error) {
	text, err := h.store.Packs.Get(ctx, m.Text)
	if err != nil {
		return messageRow{}, err
	}
	row := messageRow{Message: m.ID, Role: m.Role, Agent: m.Agent, TurnSeq: m.TurnSeq, Text: string(text), Run: m.Run,
		Status: m.Status, At: m.At, Attachments: []attachmentRow{}}
	for _, at := range m.Attachments {
		row.Attachments = append(row.Attachments, attachmentRow{at.ID, at.Name, at.Display, at.Stored, at.Bytes, at.Hash})
	}
	return row, nil
}

func opRename(ctx context.Context, h *Host, a ConversationArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	title := strings.TrimSpace(a.Title)
	if title == "" || len(title) > 400 || strings.ContainsAny(title, "\n\r") {
		return kernel.E("host.rename", kernel.Invalid, nil, "the title is empty, too long or has several lines").WithNext("give one line of up to 400 bytes")
	}
	c.Title = title
	return h.putConversation(ctx, c, emit)
}

func opArchive(ctx context.Context, h *Host, a ConversationArgs, emit Emit) error {
	c, err := h.conversation(ctx, a.Conversation)
	if err != nil {
		return err
	}
	c.Archived = a.Archived
	return h.putConversation(ctx, c, emit)
}

func (h *Host) putConversation(ctx context.Context, c kernel.Conversation, emit Emit) error {
	c.Updated = h.engine.Clock.Now()
	if err := h.store.Conversations.PutConversation(ctx, c); err != nil {
		return err
	}
	return give(emit, c)
}

type ledgerRow struct {
	Run     kernel.RunID      `json:"run"`
	Seq     uint64            `json:"seq"`
	Kind    kernel.RecordKind `json:"kind"`
	Stage   string            `json:"stage"`
	Attempt kernel.AttemptID  `json:"attempt"`
	Hash    kernel.Digest     `json:"hash"`
	Prev    kernel.Digest     `json:"prev"`
	At      time.Time         `json:"at"`
	In      kernel.Digest     `json:"in,omitzero"`
	Out     kernel.Digest     `json:"out,omitzero"`
	Impl    string            `json:"impl,omitempty"`
}

func opLedger(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	if _, err := h.run(ctx, a.Run); err != nil {
		return err
	}
	for r, err := range h.store.Ledger.Read(ctx, kernel.RunID(a.Run), 1) {
		if err != nil {
			return err
		}
		row := ledgerRow{Run: r.Run, Seq: r.Seq, Kind: r.Kind, Stage: r.Stage, Attempt: r.Attempt,
			Hash: kernel.HashRecord(r.Encode()), Prev: r.Prev, At: r.At}
		if r.Kind == kernel.StageFinished || r.Kind == kernel.StageFailed || r.Kind == kernel.StageStarted {
			var end struct {
				In   kernel.Digest `json:"in"`
				Out  kernel.Digest `json:"out"`
				Impl string        `json:"impl"`
			}
			if json.Unmarshal(r.Body, &end) == nil {
				row.In, row.Out, row.Impl = end.In, end.Out, end.Impl
			}
		}
		if err := give(emit, row); err != nil {
			return err
		}
	}
	return nil
}

type verifyRow struct {
	Run      kernel.RunID `json:"run"`
	OK       bool         `json:"ok"`
	Records  uint64       `json:"records"`
	FirstBad *uint64      `json:"first_bad"`
	Reason   string       `json:"reason,omitempty"`
}

// opLedgerVerify re-reads every chain and folds it: what does not hash, link or
// follow is named by run and record.
func opLedgerVerify(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	bad := 0
	verify := func(run kernel.RunID) error {
		row := verifyRow{Run: run, OK: true}
		s := kernel.NewState(run)
		for r, err := range h.store.Ledger.Read(ctx, run, 1) {
			if err == nil {
				err = s.Apply(r)
			}
			if err != nil {
				n := row.Records + 1
				row.OK, row.FirstBad, row.Reason = false, &n, say.Sentence(err)
				bad++
				break
			}
			row.Records++
		}
		return give(emit, row)
	}
	if a.Run != "" {
		if _, err := h.run(ctx, a.Run); err != nil {
			return err
		}
		if err := verify(kernel.RunID(a.Run)); err != nil {
			return err
		}
	} else {
		for s, err := range h.store.Ledger.Summaries(ctx) {
			if err != nil {
				return err
			}
			if err := verify(s.Run); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return kernel.E("host.verify", kernel.Corrupt, nil, "%d ledgers do not hold", bad).WithNext("run witan check")
	}
	return nil
}

// PackArgs names a pack.
type PackArgs struct {
	Hash string `json:"hash,omitempty"`
}

func opPackList(ctx context.Context, h *Host, _ PackArgs, emit Emit) error {
	refs, err := h.references(ctx)
	if err != nil {
		return err
	}
	for p, err := range h.store.Packs.List(ctx) {
		if err != nil {
			return err
		}
		p.Refs = refs[p.Hash]
		if err := give(emit, p); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) pack(ctx context.Context, a PackArgs) (kernel.PackInfo, error) {
	d, err := kernel.ParseDigest(a.Hash)
	if err != nil {
		return kernel.PackInfo{}, err
	}
	info, err := h.store.Packs.Stat(ctx, d)
	if kernel.IsKind(err, kernel.NotFound) {
		return info, kernel.E("host.pack", kernel.NotFound, nil, "pack %s is unknown", d).WithNext("see witan pack ls")
	}
	return info, err
}

func opPackStat(ctx context.Context, h *Host, a PackArgs, emit Emit) error {
	info, err := h.pack(ctx, a)
	if err != nil {
		return err
	}
	refs, err := h.references(ctx)
	if err != nil {
		return err
	}
	info.Refs = refs[info.Hash]
	return give(emit, info)
}

// packPart is a piece of a pack on its way to a command. An empty pack is one
// empty piece.
type packPart struct {
	Hash   kernel.Digest `json:"hash"`
	Kind   string        `json:"kind"`
	Offset int           `json:"offset"`
	Data   string        `json:"data"` // base64
}

const packPartBytes = 3 << 20

func opPackCat(ctx context.Context, h *Host, a PackArgs, emit Emit) error {
	info, err := h.pack(ctx, a)
	if err != nil {
		return err
	}
	b, err := h.store.Packs.Get(ctx, info.Hash)
	if err != nil {
		return err
	}
	for at := 0; ; {
		n := min(len(b)-at, packPartBytes)
		if err := give(emit, packPart{info.Hash, string(info.Kind), at, base64.StdEncoding.EncodeToString(b[at : at+n])}); err != nil {
			return err
		}
		if at += n; at == len(b) {
			return nil
		}
	}
}
