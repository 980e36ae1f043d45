package host

import (
	"context"
	"strings"
	"sync"

	"witan/kernel"
	"witan/stages/invoke"
	"witan/stages/invoke/council"
)

// toolbox offers the council's tools to the agents of turns. It listens from the
// first turn on.
type toolbox struct {
	h    *Host
	once sync.Once
	srv  *council.Server
	err  error

	mu    sync.Mutex
	ofRun map[string]endpoint // guarded by mu; by key
}

// endpoint serves the turns of one session.
type endpoint struct {
	e   *council.Endpoint
	run kernel.RunID
}

func newToolbox(h *Host) *toolbox { return &toolbox{h: h, ofRun: map[string]endpoint{}} }

// tools are those of a turn. An agent whose session goes on over the turns of a
// run keeps its server; every other turn has one of its own.
func (b *toolbox) tools(ctx context.Context, env kernel.Env, t kernel.Turn) (invoke.Tools, error) {
	b.once.Do(func() {
		var dir string
		if dir, b.err = b.h.folder("tools"); b.err == nil {
			b.srv, b.err = council.Listen(dir)
		}
	})
	if b.err != nil {
		return invoke.Tools{}, b.err
	}
	turn := council.NewTurn(council.TurnConfig{Env: env, Turn: t, Strict: t.Repair == "receipt", Lookup: b.lookup(env, t)})
	if t.Plan == "batch" || t.Write || !t.Candidate.IsZero() {
		m, over := b.srv.Open(turn)
		return invoke.Tools{Servers: []kernel.MCPServer{m}, Collect: turn.Collect, Waiting: turn.Waiting, Close: over}, nil
	}
	e := b.endpoint(t, env)
	over := e.Turn(turn)
	return invoke.Tools{Servers: []kernel.MCPServer{e.MCP()}, Collect: turn.Collect, Waiting: turn.Waiting, Close: over}, nil
}

// endpoint finds the server of a session, and closes those of runs that are over.
func (b *toolbox) endpoint(t kernel.Turn, env kernel.Env) *council.Endpoint {
	key := string(kernel.SessionOwner(t.Plan, t.Agent, t.Run))
	if t.Plan == "direct" {
		key = string(t.Agent) + " in " + string(b.h.conversationOf(t.Run))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, o := range b.ofRun {
		if k != key && !b.h.engine.Active(o.run) && !strings.Contains(k, " in ") {
			o.e.Close()
			delete(b.ofRun, k)
		}
	}
	e := b.srv.Endpoint(key)
	b.ofRun[key] = endpoint{e, t.Run}
	return e
}

func (h *Host) conversationOf(run kernel.RunID) kernel.ConversationID {
	s, err := h.store.Ledger.Summary(context.Background(), run)
	if err != nil {
		return ""
	}
	return s.Conversation
}

// lookup reads what the turn was told, by the id of its message: earlier
// messages of the conversation, and what others said in this run as far as the
// phase allows.
func (b *toolbox) lookup(env kernel.Env, t kernel.Turn) func(context.Context, string) (string, error) {
	return func(ctx context.Context, id string) (string, error) {
		var text kernel.Digest
		for _, g := range t.Given {
			if string(g.Message) == id {
				text = g.Text
			}
		}
		if text.IsZero() {
			snap, err := kernel.GetObject[kernel.Snapshot](ctx, env.Packs, t.Snapshot)
			if err != nil {
				return "", err
			}
			for _, m := range snap.History {
				if string(m.Message) == id {
					text = m.Text
				}
			}
		}
		if text.IsZero() {
			return "", kernel.E("host.lookup", kernel.NotFound, nil, "%q is nothing that this turn was told", id).WithNext("use an id of the turn block or of the conversation")
		}
		raw, err := env.Packs.Get(ctx, text)
		return string(raw), err
	}
}

func (b *toolbox) close() error {
	if b == nil || b.srv == nil {
		return nil
	}
	return b.srv.Close()
}
