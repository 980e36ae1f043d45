package kerneltest

import (
	"context"
	"iter"

	"witan/kernel"
)

// Conversations decorates c.
func (f *Faults) Conversations(c kernel.Conversations) kernel.Conversations { return &faultConvs{c, f} }

type faultConvs struct {
	c kernel.Conversations
	f *Faults
}

func (d *faultConvs) PutConversation(ctx context.Context, c kernel.Conversation) error {
	return do(d.f, "PutConversation", func() error { return d.c.PutConversation(ctx, c) })
}

func (d *faultConvs) Conversation(ctx context.Context, id kernel.ConversationID) (kernel.Conversation, error) {
	return call(d.f, "Conversation", func() (kernel.Conversation, error) { return d.c.Conversation(ctx, id) })
}

func (d *faultConvs) Conversations(ctx context.Context) iter.Seq2[kernel.Conversation, error] {
	return seq(d.f, "Conversations", func() iter.Seq2[kernel.Conversation, error] { return d.c.Conversations(ctx) })
}

func (d *faultConvs) PutMessage(ctx context.Context, m kernel.Message) error {
	return do(d.f, "PutMessage", func() error { return d.c.PutMessage(ctx, m) })
}

func (d *faultConvs) Messages(ctx context.Context, id kernel.ConversationID, from uint64) iter.Seq2[kernel.Message, error] {
	return seq(d.f, "Messages", func() iter.Seq2[kernel.Message, error] { return d.c.Messages(ctx, id, from) })
}

func (d *faultConvs) ReserveTurns(ctx context.Context, id kernel.ConversationID, claim string, n int) (uint64, error) {
	return call(d.f, "ReserveTurns", func() (uint64, error) { return d.c.ReserveTurns(ctx, id, claim, n) })
}

func (d *faultConvs) Session(ctx context.Context, id kernel.ConversationID, a kernel.AgentID) (kernel.Session, error) {
	return call(d.f, "Session", func() (kernel.Session, error) { return d.c.Session(ctx, id, a) })
}

func (d *faultConvs) PutSession(ctx context.Context, id kernel.ConversationID, a kernel.AgentID, s kernel.Session) error {
	return do(d.f, "PutSession", func() error { return d.c.PutSession(ctx, id, a, s) })
}

func (d *faultConvs) ForgetSession(ctx context.Context, id kernel.ConversationID, a kernel.AgentID) error {
	return do(d.f, "ForgetSession", func() error { return d.c.ForgetSession(ctx, id, a) })
}

// Streams decorates s.
func (f *Faults) Streams(s kernel.Streams) kernel.Streams { return &faultStreams{s, f} }

type faultStreams struct {
	s kernel.Streams
	f *Faults
}

func (d *faultStreams) AppendStream(ctx context.Context, a kernel.AttemptID, chunk []byte) error {
	return do(d.f, "AppendStream", func() error { return d.s.AppendStream(ctx, a, chunk) })
}

func (d *faultStreams) ReadStream(ctx context.Context, a kernel.AttemptID) ([]byte, error) {
	return call(d.f, "ReadStream", func() ([]byte, error) { return d.s.ReadStream(ctx, a) })
}

func (d *faultStreams) DropStream(ctx context.Context, a kernel.AttemptID) error {
	return do(d.f, "DropStream", func() error { return d.s.DropStream(ctx, a) })
}
