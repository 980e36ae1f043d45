package fake

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// Main runs the agent and returns its exit code.
func Main(args []string) int {
	if len(args) > 0 && args[0] == holdArg {
		return hold()
	}
	var speak func(*agent, []string) (dialect, int)
	plain := len(args) > 0 && args[0] == "--text"
	if len(args) > 0 {
		speak = dialects[args[0]]
	}
	if plain || speak != nil {
		args = args[1:]
	}
	if len(args) != 1 && !(plain && len(args) == 2) && !(speak != nil && len(args) > 1) {
		fmt.Fprintln(os.Stderr, "usage: fakeagent SCRIPT.json, fakeagent --text SCRIPT.json [PROMPT], or fakeagent --claude|--codex|--gemini|--opencode|--qwen SCRIPT.json FLAGS")
		return 2
	}
	s, err := load(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		return 2
	}
	a := &agent{script: s, plain: plain, answers: map[string]chan json.RawMessage{}, cancels: map[string]context.CancelFunc{},
		servers: map[string][]mcpServer{}, clients: map[string]*mcpClient{}}
	fmt.Fprint(os.Stdout, s.Banner)
	if speak != nil {
		a.flags = args[1:]
		d, code := speak(a, a.flags)
		if d == nil {
			return code
		}
		a.dialect = d
		if o, ok := d.(oneShot); ok {
			return a.once(o)
		}
	}
	if plain {
		return a.textMode(args[1:])
	}
	return a.serve()
}

func (a *agent) serve() int {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			if a.dialect != nil {
				a.dialect.heard(line)
			} else {
				a.line(line)
			}
		}
		if err != nil {
			if a.deaf.Load() && err == io.EOF {
				forever() // a deaf agent does not care that its input ended
			}
			return 0
		}
	}
}

// textMode answers one prompt in plain text.
func (a *agent) textMode(prompt []string) int {
	if a.Blind {
		forever()
	}
	if len(prompt) == 0 {
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			fmt.Fprintln(os.Stderr, "fakeagent:", err)
			return 2
		}
		prompt = []string{string(b)}
	}
	a.record("", prompt[0])
	t := &turn{a: a, ctx: context.Background(), prompt: prompt[0]}
	t.steps(a.stepsFor(prompt[0]))
	if t.fail != nil {
		fmt.Fprintln(os.Stderr, string(t.fail))
		return 1
	}
	return 0
}

type agent struct {
	script
	plain   bool
	dialect dialect  // nil = ACP
	whole   bool     // what is said without a break is printed as one
	flags   []string // of the dialect
	deaf    atomic.Bool
	next    atomic.Int64
	out     sync.Mutex
	mu      sync.Mutex
	answers map[string]chan json.RawMessage
	cancels map[string]context.CancelFunc
	servers map[string][]mcpServer // by session, as offered; guarded by mu
	clients map[string]*mcpClient  // by session and server; guarded by mu
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (a *agent) send(v any) {
	if a.plain {
		return
	}
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

func (a *agent) refuse(id json.RawMessage, code int, message string) {
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}})
}

func (a *agent) line(b []byte) {
	var m message
	if json.Unmarshal(b, &m) != nil {
		return
	}
	var p struct {
		Session string      `json:"sessionId"`
		Servers []mcpServer `json:"mcpServers"`
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
		a.initialize(m.ID)
	case "session/new":
		a.open(m.ID, p.Servers)
	case "session/load":
		if !a.Load || strings.Contains(p.Session, "gone") {
			a.refuse(m.ID, -32602, "unknown session "+p.Session)
			return
		}
		a.offer(p.Session, p.Servers)
		if a.Replay != "" {
			(&turn{a: a, session: p.Session}).text(a.Replay)
		}
		a.answer(m.ID, map[string]any{})
	case "session/cancel":
		a.mu.Lock()
		if c := a.cancels[p.Session]; c != nil {
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
			a.refuse(m.ID, -32601, "method not found")
		}
	}
}

func (a *agent) initialize(id json.RawMessage) {
	if a.NoInit {
		return
	}
	v := a.Version
	if v == 0 {
		v = 1
	}
	a.answer(id, map[string]any{"protocolVersion": v, "agentCapabilities": map[string]any{"loadSession": a.Load}, "agentInfo": map[string]any{"name": a.Name}})
}

func (a *agent) open(id json.RawMessage, servers []mcpServer) {
	if a.Auth {
		a.refuse(id, -32000, "authentication required")
		return
	}
	session := fmt.Sprintf("s-%d-%d", os.Getpid(), a.next.Add(1))
	a.offer(session, servers)
	res := map[string]any{"sessionId": session}
	if a.Modes != nil {
		res["modes"] = a.Modes
	}
	a.answer(id, res)
	if a.Blind {
		forever()
	}
}

// record appends a prompt to the log.
func (a *agent) record(session, prompt string) {
	if a.Log == "" {
		return
	}
	entry := map[string]any{"session": session, "prompt": prompt, "pid": os.Getpid()}
	if a.flags != nil {
		entry["flags"] = a.flags
	}
	if a.LogEnv != nil {
		env := map[string]string{}
		for _, k := range a.LogEnv {
			if v, ok := os.LookupEnv(k); ok {
				env[k] = v
			}
		}
		entry["env"] = env
	}
	b, _ := json.Marshal(entry)
	f, err := os.OpenFile(a.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(append(b, '\n'))
		f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
	}
}

func (a *agent) prompt(ctx context.Context, id json.RawMessage, session, text string) {
	a.record(session, text)
	t := &turn{a: a, ctx: ctx, asked: ctx, session: session, prompt: text, stop: "end_turn"}
	t.steps(a.stepsFor(text))
	switch {
	case t.mute:
		return
	case t.fail != nil:
		a.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": t.fail})
		return
	case t.ctx.Err() != nil:
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
