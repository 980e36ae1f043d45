package invoketest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Serve plays the part of a script that needs no process of its own, over a
// pair of pipes: it is an agent for acp.InProcess.
func Serve(s Script) func(ctx context.Context, r io.Reader, w io.Writer) error {
	return func(ctx context.Context, r io.Reader, w io.Writer) error {
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		p := &player{w: w, quit: ctx}
		if err := json.Unmarshal(b, &p.script); err != nil {
			return err
		}
		return p.serve(r)
	}
}

type player struct {
	script struct {
		Steps []map[string]json.RawMessage `json:"steps"`
	}
	quit context.Context
	wmu  sync.Mutex
	w    io.Writer
	wg   sync.WaitGroup

	mu      sync.Mutex
	next    int
	cancels map[string]context.CancelFunc // by session
	err     error                         // why it ended by itself
}

func (p *player) serve(r io.Reader) error {
	ctx, end := context.WithCancel(p.quit)
	defer p.wg.Wait()
	defer end()
	p.cancels = map[string]context.CancelFunc{}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.err
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Session string `json:"sessionId"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		p.mu.Lock()
		switch m.Method {
		case "initialize":
			p.answer(m.ID, `{"protocolVersion":1}`)
		case "session/new":
			p.next++
			p.answer(m.ID, fmt.Sprintf(`{"sessionId":"p-%d"}`, p.next))
		case "session/prompt":
			tctx, cancel := context.WithCancel(ctx)
			p.cancels[m.Params.Session] = cancel
			p.wg.Go(func() { p.turn(tctx, r, m.ID, m.Params.Session) })
		case "session/cancel":
			if c := p.cancels[m.Params.Session]; c != nil {
				c()
			}
		}
		p.mu.Unlock()
	}
}

func (p *player) answer(id json.RawMessage, result string) {
	p.print(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result))
}

func (p *player) print(s string) {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	_, _ = io.WriteString(p.w, s)
}

func (p *player) update(session, update string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`+"\n", session, update)
}

func (p *player) text(session, s string) string {
	b, _ := json.Marshal(s)
	return p.update(session, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":`+string(b)+`}}`)
}

func (p *player) turn(ctx context.Context, r io.Reader, id json.RawMessage, session string) {
	obey, stop := ctx, "end_turn"
	for _, s := range p.script.Steps {
		if obey.Err() != nil {
			break
		}
		for key, v := range s {
			switch key {
			case "ignore_cancel":
				obey = p.quit
			case "stop":
				_ = json.Unmarshal(v, &stop)
			case "unanswered":
				return
			case "exit":
				p.mu.Lock()
				p.err = fmt.Errorf("exit %s", v)
				p.mu.Unlock()
				if c, ok := r.(io.Closer); ok {
					_ = c.Close()
				}
				return
			default:
				p.step(ctx, obey, session, s, key, v)
			}
		}
	}
	if obey.Err() != nil {
		stop = "cancelled"
	}
	p.answer(id, fmt.Sprintf(`{"stopReason":%q}`, stop))
}

func (p *player) step(ctx, obey context.Context, session string, s map[string]json.RawMessage, key string, v json.RawMessage) {
	var text string
	var n int
	_ = json.Unmarshal(v, &text)
	_ = json.Unmarshal(v, &n)
	switch key {
	case "text":
		p.print(p.text(session, text))
	case "bytes":
		_ = json.Unmarshal(s["of"], &text)
		for _, c := range []byte(p.text(session, text)) {
			p.print(string([]byte{c}))
		}
	case "tool":
		p.print(p.update(session, strings.Replace(strings.Replace(string(v), `"id"`, `"toolCallId"`, 1), "{", `{"sessionUpdate":"tool_call",`, 1)))
	case "flood":
		for i := range n {
			p.print(p.text(session, fmt.Sprintf("%d ", i)))
		}
	case "line":
		p.print(p.update(session, `{"sessionUpdate":"tool_call_update","toolCallId":"big","status":"completed","rawOutput":"`+strings.Repeat("x", n)+`"}`))
	case "raw":
		p.print(text)
	case "until_cancel":
		<-ctx.Done()
	case "hang":
		<-obey.Done()
	}
}
