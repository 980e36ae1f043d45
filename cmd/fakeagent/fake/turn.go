package fake

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// turn is one prompt being answered.
type turn struct {
	a       *agent
	ctx     context.Context // ends when the agent obeys a cancel
	asked   context.Context // ends when it is asked to
	session string
	prompt  string
	usage   json.RawMessage
	stop    string
	fail    json.RawMessage
	late    bool
	mute    bool
	held    strings.Builder // text, where whole texts are printed
}

func (t *turn) update(u map[string]any) {
	if t.a.dialect != nil {
		t.a.print(string(t.a.dialect.lines(u)))
		return
	}
	t.a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": t.session, "update": u}})
}

func (t *turn) text(s string) {
	if t.a.plain {
		t.a.print(s)
		return
	}
	if t.a.whole {
		t.held.WriteString(s)
		return
	}
	t.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": s}})
}

// pause is how often a waiting step looks again.
const pause = 2 * time.Millisecond

// wait returns when done does, or the turn is cancelled.
func (t *turn) wait(every time.Duration, done func() bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *turn) steps(steps []step) {
	for _, s := range steps {
		if t.ctx.Err() != nil {
			return
		}
		t.step(s)
	}
}

func (t *turn) step(s step) {
	if s.Text == nil {
		t.flush()
	}
	switch {
	case s.Text != nil:
		t.text(*s.Text)
	case s.Thought != "":
		t.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": s.Thought}})
	case s.Tool != nil:
		var u map[string]any
		_ = json.Unmarshal([]byte(strings.ReplaceAll(string(s.Tool), "$session", t.session)), &u)
		u["toolCallId"], u["sessionUpdate"] = u["id"], "tool_call"
		t.update(u)
	case s.Permission != nil:
		t.ask(*s.Permission)
	case s.Permissions != nil:
		t.askAll(s.Permissions)
	case s.Write != nil:
		t.write(*s.Write)
	case s.Save != nil:
		t.text("saved " + string(t.call("fs/write_text_file", map[string]any{"sessionId": t.session, "path": s.Save.Path, "content": s.Save.Text}, "")) + "\n")
	case s.Open != "":
		t.text("opened " + string(t.call("fs/read_text_file", map[string]any{"sessionId": t.session, "path": s.Open}, "")) + "\n")
	case s.Tree > 0:
		t.tree(s)
	case s.Flood > 0:
		for i := range s.Flood {
			t.text(fmt.Sprintf("%d ", i))
		}
	case s.Usage != nil:
		t.usage = s.Usage
	case s.Receipt != nil:
		t.text("\n<witan-receipt>\n" + blockOf(t.prompt).fill(string(s.Receipt)) + "\n</witan-receipt>\n")
	case s.MCP != nil:
		t.mcp(*s.MCP)
	case s.Echo:
		_, block, _ := strings.Cut(t.prompt, "<witan-turn>")
		block, _, _ = strings.Cut(block, "</witan-turn>")
		t.text("turn " + strings.TrimSpace(block))
	case s.N > 0:
		t.dribble(s.Bytes)
	case s.Line > 0:
		t.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "big", "status": "completed", "rawOutput": strings.Repeat("x", s.Line)})
	default:
		t.misbehave(s)
	}
}

func (t *turn) misbehave(s step) {
	switch {
	case s.Raw != nil:
		t.a.print(*s.Raw)
	case s.Raw64 != nil:
		t.a.print(string(s.Raw64))
	case s.Stderr != "":
		fmt.Fprint(os.Stderr, s.Stderr)
	case s.Stderr64 != nil:
		bytewise(os.Stderr, s.Stderr64)
	case s.Request != "":
		t.text("answer " + string(t.call(s.Request, map[string]any{}, "")))
	case s.Notify != "":
		t.a.send(map[string]any{"jsonrpc": "2.0", "method": s.Notify, "params": map[string]any{}})
	case s.Error != nil:
		t.fail = s.Error
	case s.Stop != "":
		t.stop = s.Stop
	case s.Exit != nil:
		os.Exit(*s.Exit)
	case s.Crash:
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		forever()
	case s.Late:
		t.late = true
	case s.Unanswered:
		t.mute = true
	default:
		t.linger(s)
	}
}

// linger does the steps that take time, or decide on how it ends.
func (t *turn) linger(s step) {
	switch {
	case s.WaitFile != "":
		t.wait(pause, func() bool { _, err := os.Stat(s.WaitFile); return err == nil })
	case s.Touch != "":
		if err := os.WriteFile(s.Touch, nil, 0o600); err != nil {
			t.text("touch: " + err.Error())
		}
	case s.DelayMS > 0:
		select {
		case <-time.After(time.Duration(s.DelayMS) * time.Millisecond):
		case <-t.ctx.Done():
		}
	case s.Cancel:
		<-t.asked.Done()
	case s.Hang:
		t.wait(time.Hour, func() bool { return false })
	case s.Heartbeat:
		every := time.Duration(s.EveryMS) * time.Millisecond
		t.wait(max(every, pause), func() bool {
			t.update(map[string]any{"sessionUpdate": "usage_update", "usage": map[string]any{"inputTokens": 1}})
			return false
		})
	case s.Deaf:
		t.a.deaf.Store(true)
		t.ctx = context.WithoutCancel(t.ctx)
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	case s.NoCancel:
		t.ctx = context.WithoutCancel(t.ctx)
	case s.NoTerm:
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	}
}

// dribble sends a chunk byte by byte, each with a system call of its own.
func (t *turn) dribble(text string) {
	b := []byte(text)
	if t.a.dialect != nil {
		b = t.a.dialect.lines(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}})
	} else if !t.a.plain {
		b, _ = json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": t.session,
			"update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}}}})
		b = append(b, '\n')
	}
	t.a.out.Lock()
	defer t.a.out.Unlock()
	bytewise(os.Stdout, b)
}

// forever waits with a timer, so that the runtime does not take it for a deadlock.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

func bytewise(f *os.File, b []byte) {
	for _, c := range b {
		_, _ = f.Write([]byte{c})
	}
}

// call asks the client; null in plain text, and when the turn is cancelled first.
func (t *turn) call(method string, params any, id string) json.RawMessage {
	if t.a.plain {
		return json.RawMessage("null")
	}
	if t.a.dialect != nil {
		return t.a.dialect.ask(t, method, params, id)
	}
	if id == "" {
		id = strconv.FormatInt(1000+t.a.next.Add(1), 10)
	}
	ch := make(chan json.RawMessage, 2)
	t.a.mu.Lock()
	t.a.answers[id] = ch
	t.a.mu.Unlock()
	t.a.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	select {
	case r := <-ch:
		return r
	case <-t.ctx.Done():
		return json.RawMessage("null")
	}
}

// askAll asks all at once; the answers become text in the order of the list.
func (t *turn) askAll(ps []permission) {
	res := make([]json.RawMessage, len(ps))
	var wg sync.WaitGroup
	for i, p := range ps {
		wg.Go(func() { res[i] = t.request(p) })
	}
	wg.Wait()
	for _, r := range res {
		t.text("permission " + string(r) + "\n")
	}
}

// request asks and gives the answer.
func (t *turn) request(p permission) json.RawMessage {
	if p.Call == "" {
		p.Call = "perm-" + p.Title
	}
	call := map[string]any{"toolCallId": p.Call, "title": p.Title, "kind": p.Kind}
	if p.Path != "" {
		call["locations"] = []any{map[string]any{"path": p.Path}}
	}
	if p.Command != "" {
		call["rawInput"] = map[string]any{"command": p.Command}
	}
	options := p.Options
	if options == nil {
		options = json.RawMessage(`[{"optionId":"yes","kind":"allow_once","name":"Allow"},{"optionId":"no","kind":"reject_once","name":"Reject"}]`)
	}
	return t.call("session/request_permission", map[string]any{"sessionId": t.session, "toolCall": call, "options": options}, p.ID)
}

func (t *turn) ask(p permission) {
	res := t.request(p)
	t.text("permission " + string(res) + "\n")
	var r struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(res, &r)
	if r.Outcome.Option == "" {
		r.Outcome.Option = r.Outcome.Outcome
	}
	t.steps(p.Then[r.Outcome.Option])
}
