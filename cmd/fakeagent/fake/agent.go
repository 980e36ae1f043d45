package fake

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Main runs the agent and returns its exit code.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: fakeagent SCRIPT.json")
		return 2
	}
	s, err := load(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 2
	}
	a := &agent{script: s, answers: map[string]chan json.RawMessage{}, cancels: map[string]context.CancelFunc{}}
	fmt.Fprint(os.Stdout, s.Banner)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			a.line(line)
		}
		if err != nil {
			if a.deaf.Load() && err == io.EOF {
				select {} // a deaf agent does not care that its input ended
			}
			return 0
		}
	}
}

type agent struct {
	script
	deaf    atomic.Bool
	next    atomic.Int64
	out     sync.Mutex
	mu      sync.Mutex
	answers map[string]chan json.RawMessage
	cancels map[string]context.CancelFunc
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (a *agent) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	a.print(string(b) + "\n")
}

func (a *agent) print(s string) {
	a.out.Lock()
	defer a.out.Unlock()
	_, _ = io.WriteString(os.Stdout, s)
}

func (a *agent) answer(id json.RawMessage, result any) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (a *agent) line(b []byte) {
	var m message
	if json.Unmarshal(b, &m) != nil {
		return
	}
	var p struct {
		Session string `json:"sessionId"`
		Prompt  []struct {
			Text string `json:"text"`
		} `json:"prompt"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "":
		a.mu.Lock()
		ch := a.answers[string(m.ID)]
		a.mu.Unlock()
		if ch != nil {
			if m.Result == nil {
				m.Result = m.Error
			}
			ch <- m.Result
		}
	case "initialize":
		if a.NoInit {
			return
		}
		v := a.Version
		if v == 0 {
			v = 1
		}
		a.answer(m.ID, map[string]any{"protocolVersion": v, "agentCapabilities": map[string]any{"loadSession": a.Load}})
	case "session/new":
		if a.Auth {
			a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32000, "message": "authentication required"}})
			return
		}
		a.answer(m.ID, map[string]any{"sessionId": fmt.Sprintf("s-%d-%d", os.Getpid(), a.next.Add(1))})
	case "session/load":
		if !a.Load || strings.Contains(p.Session, "gone") {
			a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32602, "message": "unknown session " + p.Session}})
			return
		}
		a.answer(m.ID, map[string]any{})
	case "session/cancel":
		a.mu.Lock()
		if c := a.cancels[p.Session]; c != nil && !a.deaf.Load() {
			c()
		}
		a.mu.Unlock()
	case "session/prompt":
		ctx, cancel := context.WithCancel(context.Background())
		a.mu.Lock()
		a.cancels[p.Session] = cancel
		a.mu.Unlock()
		text := ""
		for _, b := range p.Prompt {
			text += b.Text
		}
		go a.prompt(ctx, m.ID, p.Session, text)
	default:
		if m.ID != nil {
			a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "method not found"}})
		}
	}
}

// turn is one prompt being answered.
type turn struct {
	a       *agent
	ctx     context.Context
	session string
	prompt  string
	usage   json.RawMessage
	stop    string
	fail    json.RawMessage
	late    bool
}

func (a *agent) prompt(ctx context.Context, id json.RawMessage, session, text string) {
	if a.Log != "" {
		b, _ := json.Marshal(map[string]any{"session": session, "prompt": text, "pid": os.Getpid()})
		f, err := os.OpenFile(a.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(append(b, '\n'))
			f.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "fakeagent:", err)
		}
	}
	t := &turn{a: a, ctx: ctx, session: session, prompt: text, stop: "end_turn"}
	for _, s := range a.stepsFor(text) {
		if ctx.Err() != nil {
			break
		}
		t.step(s)
	}
	if t.fail != nil {
		a.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": t.fail})
		return
	}
	if ctx.Err() != nil {
		t.stop = "cancelled"
	}
	res := map[string]any{"stopReason": t.stop}
	if t.usage != nil {
		res["usage"] = t.usage
	}
	a.answer(id, res)
	if t.late {
		a.answer(id, res)
	}
}

func (t *turn) update(u map[string]any) {
	t.a.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": t.session, "update": u}})
}

func (t *turn) text(s string) {
	t.update(map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": s}})
}

// pause is how often a waiting step looks again.
const pause = 2 * time.Millisecond

// wait returns when done does, or the turn is cancelled.
func (t *turn) wait(done func() bool) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.ctx.Done():
			return
		}
	}
}

func (t *turn) step(s step) {
	switch {
	case s.Text != nil:
		t.text(*s.Text)
	case s.Thought != "":
		t.update(map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": s.Thought}})
	case s.Tool != nil:
		var u map[string]any
		_ = json.Unmarshal(s.Tool, &u)
		u["toolCallId"], u["sessionUpdate"] = u["id"], "tool_call"
		t.update(u)
	case s.Permission != nil:
		t.ask(*s.Permission)
	case s.Write != nil:
		t.write(*s.Write)
	case s.Tree > 0:
		t.tree(s.Tree, s.PIDs)
	case s.Flood > 0:
		for i := range s.Flood {
			t.text(fmt.Sprintf("%d ", i))
		}
	case s.Usage != nil:
		t.usage = s.Usage
	case s.Receipt != nil:
		t.text("\n<witan-receipt>\n" + string(s.Receipt) + "\n</witan-receipt>\n")
	case s.Echo:
		_, block, _ := strings.Cut(t.prompt, "<witan-turn>")
		block, _, _ = strings.Cut(block, "</witan-turn>")
		t.text("turn " + strings.TrimSpace(block))
	case s.N > 0:
		t.dribble(s.Bytes)
	case s.Raw != nil:
		t.a.print(*s.Raw)
	case s.Stderr != "":
		fmt.Fprint(os.Stderr, s.Stderr)
	case s.Line > 0:
		t.update(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "big", "status": "completed", "rawOutput": strings.Repeat("x", s.Line)})
	default:
		t.misbehave(s)
	}
}

func (t *turn) misbehave(s step) {
	switch {
	case s.Request != "":
		t.text("answer " + string(t.call(s.Request, map[string]any{}, "")))
	case s.Notify != "":
		t.a.send(map[string]any{"jsonrpc": "2.0", "method": s.Notify, "params": map[string]any{}})
	case s.WaitFile != "":
		t.wait(func() bool { _, err := os.Stat(s.WaitFile); return err == nil })
	case s.Touch != "":
		if err := os.WriteFile(s.Touch, nil, 0o600); err != nil {
			t.text("touch: " + err.Error())
		}
	case s.Hang:
		<-t.ctx.Done()
	case s.Heartbeat:
		t.wait(func() bool {
			t.update(map[string]any{"sessionUpdate": "usage_update", "usage": map[string]any{"inputTokens": 1}})
			return false
		})
	case s.Deaf:
		t.a.deaf.Store(true)
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	case s.Error != nil:
		t.fail = s.Error
	case s.Stop != "":
		t.stop = s.Stop
	case s.Exit != nil:
		os.Exit(*s.Exit)
	case s.Crash:
		p, _ := os.FindProcess(os.Getpid())
		_ = p.Kill()
		select {}
	case s.Late:
		t.late = true
	}
}

// dribble sends one update byte by byte, each with a system call of its own.
func (t *turn) dribble(text string) {
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": t.session,
		"update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text}}}})
	t.a.out.Lock()
	defer t.a.out.Unlock()
	for _, c := range append(b, '\n') {
		_, _ = os.Stdout.Write([]byte{c})
	}
}

func (t *turn) call(method string, params any, id string) json.RawMessage {
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

func (t *turn) ask(p permission) {
	call := map[string]any{"toolCallId": "perm-" + p.Title, "title": p.Title, "kind": p.Kind}
	if p.Path != "" {
		call["locations"] = []any{map[string]any{"path": p.Path}}
	}
	options := p.Options
	if options == nil {
		options = json.RawMessage(`[{"optionId":"yes","kind":"allow_once","name":"Allow"},{"optionId":"no","kind":"reject_once","name":"Reject"}]`)
	}
	res := t.call("session/request_permission", map[string]any{"sessionId": t.session, "toolCall": call, "options": options}, p.ID)
	t.text("permission " + string(res) + "\n")
}

// write tries to write a file and says how that went.
func (t *turn) write(w write) {
	var err error
	switch w.By {
	case "child", "setsid":
		cmd := exec.Command("/bin/sh", "-c", `echo written > "$1"`, "sh", w.Path)
		if w.By == "setsid" {
			cmd = exec.Command("setsid", "-w", "/bin/sh", "-c", `sh -c 'echo written > "$1"' sh "$1"`, "sh", w.Path)
		}
		err = cmd.Run()
	default:
		err = os.WriteFile(w.Path, []byte("written\n"), 0o600)
	}
	if err != nil {
		t.text(fmt.Sprintf("write by %s failed: %v\n", w.By, err))
		return
	}
	t.text("write by " + w.By + " worked\n")
}

// tree starts descendants that are hard to end.
func (t *turn) tree(n int, file string) {
	for range n {
		cmd := exec.Command("setsid", "sh", "-c", `trap "" TERM HUP INT; echo $$; while :; do sleep 0.05; done`)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.text("tree: " + err.Error())
			return
		}
		pid, _ := bufio.NewReader(out).ReadString('\n')
		t.text("pid " + pid)
		if file == "" {
			continue
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = io.WriteString(f, "pid "+pid)
			f.Close()
		}
		if err != nil {
			t.text("tree: " + err.Error())
		}
	}
}
