package kerneltest

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"witan/kernel"
)

func (m *Mem) conv(op string, id kernel.ConversationID) (*memConv, error) {
	c := m.convs[id]
	if c == nil {
		return nil, notFound(op, "no conversation %s", id)
	}
	return c, nil
}

// PutConversation implements kernel.Conversations.
func (m *Mem) PutConversation(ctx context.Context, c kernel.Conversation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc := m.convs[c.ID]
	if mc == nil {
		mc = &memConv{msgs: map[kernel.MessageID]kernel.Message{}, claims: map[string]uint64{}, sess: map[kernel.AgentID]kernel.Session{}}
		m.convs[c.ID] = mc
	}
	c.Agents = slices.Clone(c.Agents)
	mc.c = c
	return nil
}

// Conversation implements kernel.Conversations.
func (m *Mem) Conversation(ctx context.Context, id kernel.ConversationID) (kernel.Conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc, err := m.conv("Conversation", id)
	if err != nil {
		return kernel.Conversation{}, err
	}
	c := mc.c
	c.Messages = len(mc.msgs)
	return c, nil
}

// Conversations implements kernel.Conversations.
func (m *Mem) Conversations(ctx context.Context) iter.Seq2[kernel.Conversation, error] {
	m.mu.Lock()
	var out []kernel.Conversation
	for _, mc := range m.convs {
		c := mc.c
		c.Messages = len(mc.msgs)
		out = append(out, c)
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b kernel.Conversation) int { return cmp.Compare(b.ID, a.ID) })
	return values(out)
}

// PutMessage implements kernel.Conversations.
func (m *Mem) PutMessage(ctx context.Context, msg kernel.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc, err := m.conv("PutMessage", msg.Conversation)
	if err != nil {
		return err
	}
	mc.msgs[msg.ID] = msg
	return nil
}

// Messages implements kernel.Conversations.
func (m *Mem) Messages(ctx context.Context, id kernel.ConversationID, from uint64) iter.Seq2[kernel.Message, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc, err := m.conv("Messages", id)
	if err != nil {
		return func(yield func(kernel.Message, error) bool) { yield(kernel.Message{}, err) }
	}
	all := slices.Collect(maps.Values(mc.msgs))
	all = slices.DeleteFunc(all, func(msg kernel.Message) bool { return msg.TurnSeq < from })
	slices.SortFunc(all, func(a, b kernel.Message) int { return cmp.Compare(a.TurnSeq, b.TurnSeq) })
	return values(all)
}

// ReserveTurns implements kernel.Conversations.
func (m *Mem) ReserveTurns(ctx context.Context, id kernel.ConversationID, claim string, n int) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc, err := m.conv("ReserveTurns", id)
	if err != nil {
		return 0, err
	}
	if first, ok := mc.claims[claim]; ok {
		return first, nil
	}
	first := mc.next + 1
	mc.claims[claim], mc.next = first, mc.next+uint64(n)
	return first, nil
}

// Session implements kernel.Conversations.
func (m *Mem) Session(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID) (kernel.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mc := m.convs[id]; mc != nil {
		if s, ok := mc.sess[agent]; ok {
			return s, nil
		}
	}
	return kernel.Session{}, notFound("Session", "no session of %s", agent)
}

// PutSession implements kernel.Conversations.
func (m *Mem) PutSession(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID, s kernel.Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	mc, err := m.conv("PutSession", id)
	if err != nil {
		return err
	}
	mc.sess[agent] = s
	return nil
}

// ForgetSession implements kernel.Conversations.
func (m *Mem) ForgetSession(ctx context.Context, id kernel.ConversationID, agent kernel.AgentID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mc := m.convs[id]; mc != nil {
		delete(mc.sess, agent)
	}
	return nil
}

// AppendStream implements kernel.Streams.
func (m *Mem) AppendStream(ctx context.Context, a kernel.AttemptID, chunk []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chunk[a] = append(m.chunk[a], chunk...)
	return nil
}

// ReadStream implements kernel.Streams.
func (m *Mem) ReadStream(ctx context.Context, a kernel.AttemptID) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.chunk[a]), nil
}

// DropStream implements kernel.Streams.
func (m *Mem) DropStream(ctx context.Context, a kernel.AttemptID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.chunk, a)
	return nil
}
