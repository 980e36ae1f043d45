package acp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
	"witan/kernel/policy"
	"witan/stages/invoke/jsonrpc"
)

// Notify implements jsonrpc.Handler: updates of the running turn. Unknown ones
// are ignored, and everything outside of a turn (a loaded session repeats its past).
func (c *conn) Notify(method string, params json.RawMessage) {
	t := c.current()
	if t == nil {
		return
	}
	switch method {
	case "session/update":
		var p struct {
			Session string `json:"sessionId"`
			Update  update `json:"update"`
		}
		if json.Unmarshal(params, &p) == nil && (p.Session == "" || p.Session == c.session) {
			t.update(p.Update)
		}
	case "_witan/outcome":
		t.outcome(params, c.t.Confined() == "in process")
	}
}

// update holds the fields of the kinds that matter.
type update struct {
	Kind    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"`
	ToolID  string          `json:"toolCallId"`
	Title   string          `json:"title"`
	Tool    string          `json:"kind"`
	Status  string          `json:"status"`
	Usage   json.RawMessage `json:"usage"`
}

func (t *turn) moved() {
	select {
	case t.progress <- struct{}{}:
	default:
	}
}

func (t *turn) update(u update) {
	switch u.Kind {
	case "agent_message_chunk":
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(u.Content, &b) != nil || b.Text == "" {
			return
		}
		t.mu.Lock()
		fits := t.text.Len()+len(b.Text) <= maxText
		if fits {
			t.text.WriteString(b.Text)
		}
		t.mu.Unlock()
		if fits {
			t.env.Emit(kernel.Event{Type: "text", Text: t.a.hide(b.Text)})
		}
		t.moved()
	case "agent_thought_chunk":
		t.moved() // thinking is progress; its text stays with the agent
	case "tool_call", "tool_call_update":
		t.tool(u)
		t.moved()
	case "plan":
		t.moved()
	case "usage_update":
		t.mu.Lock()
		t.countUsage(u.Usage)
		t.mu.Unlock() // liveness, not progress
	}
}

func clipTitle(s string) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if len(s) > maxTitle {
		s = strings.ToValidUTF8(s[:maxTitle], "") + "…"
	}
	return s
}

// tool folds a call into the list and shows it.
func (t *turn) tool(u update) {
	t.mu.Lock()
	i, ok := t.toolAt[u.ToolID]
	if !ok {
		if len(t.tools) >= kernel.MaxReplyTools {
			t.more++
			t.mu.Unlock()
			return
		}
		i = len(t.tools)
		t.toolAt[u.ToolID] = i
		t.tools = append(t.tools, kernel.ToolCall{ID: clipTitle(u.ToolID), Kind: "other", Status: "pending"})
	}
	c := &t.tools[i]
	if u.Title != "" {
		c.Title = t.a.hide(clipTitle(u.Title))
	}
	if u.Tool != "" {
		c.Kind = clipTitle(u.Tool)
	}
	if u.Status != "" {
		c.Status = clipTitle(u.Status)
	}
	if c.Status == "completed" || c.Status == "failed" {
		delete(t.running, u.ToolID)
	} else {
		t.running[u.ToolID] = true
	}
	switch c.Kind {
	case "read", "search", "think", "fetch":
	default:
		t.effects = true
	}
	ev := kernel.Event{Type: "tool", Tool: *c}
	t.mu.Unlock()
	t.env.Emit(ev)
}

// outcome keeps a finding or evidence. What an agent outside of this process
// says of its evidence is its own declaration.
func (t *turn) outcome(params json.RawMessage, own bool) {
	var p struct {
		Session string         `json:"sessionId"`
		Outcome kernel.Outcome `json:"outcome"`
		Content *string        `json:"content"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	o := p.Outcome
	if o.Type != "finding" && o.Type != "evidence" || o.ID == "" {
		return
	}
	if o.Agent = t.req.Agent; !own && o.Type == "evidence" {
		o.Level = "declared"
	}
	if p.Content != nil {
		d, err := t.env.Packs.Put(context.Background(), "evidence", []byte(*p.Content))
		if err != nil || d != o.Hash {
			return
		}
	} else if o.Type == "evidence" && o.Hash.IsZero() {
		return
	}
	t.mu.Lock()
	if len(t.outcomes) < maxOutcomes {
		t.outcomes = append(t.outcomes, o)
	}
	t.mu.Unlock()
	t.moved()
}

// countUsage reads the agent's counts; mu is held.
func (t *turn) countUsage(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var u struct {
		Input      *int64 `json:"inputTokens"`
		Output     *int64 `json:"outputTokens"`
		Cached     *int64 `json:"cachedReadTokens"`
		CacheWrite *int64 `json:"cachedWriteTokens"`
		Thought    *int64 `json:"thoughtTokens"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return
	}
	add := func(a, b *int64) *int64 {
		if a == nil || b == nil {
			return a
		}
		n := *a + *b
		return &n
	}
	in := u.Input
	if t.a.cfg.Usage.InputExcludesCache {
		in = add(in, u.Cached)
	}
	n := kernel.Usage{Input: in, Output: u.Output, Cached: u.Cached, CacheWrite: u.CacheWrite, Reasoning: u.Thought}
	n.Complete = n.Input != nil && n.Output != nil
	t.usage = n
}

// Request implements jsonrpc.Handler.
func (c *conn) Request(ctx context.Context, method string, params json.RawMessage) (any, error) {
	t := c.current()
	switch method {
	case "session/request_permission":
		if t == nil {
			return cancelled, nil
		}
		return t.permission(ctx, params)
	case "fs/read_text_file":
		if t == nil {
			return nil, &jsonrpc.Error{Code: -32600, Message: "no turn is running"}
		}
		return t.readFile(params)
	case "fs/write_text_file":
		return nil, &jsonrpc.Error{Code: -32600, Message: "files are not written for you; write them yourself where you may"}
	}
	return nil, jsonrpc.NotFound(method)
}

var cancelled = map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}

// permission answers by policy; each decision is on record before the answer leaves.
func (t *turn) permission(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Call struct {
			ID        string          `json:"toolCallId"`
			Title     string          `json:"title"`
			Kind      string          `json:"kind"`
			Raw       json.RawMessage `json:"rawInput"`
			Locations []struct {
				Path string `json:"path"`
			} `json:"locations"`
		} `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"options"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &jsonrpc.Error{Code: -32602, Message: "the request is malformed"}
	}
	t.update(update{Kind: "tool_call_update", ToolID: p.Call.ID, Title: p.Call.Title, Tool: p.Call.Kind, Status: "pending"})
	op := policy.Operation{Kind: p.Call.Kind, Title: p.Call.Title}
	asked := p.Call.Title
	for _, l := range p.Call.Locations {
		asked = l.Path
		op.Paths = append(op.Paths, resolve(t.req.Workspace, l.Path))
	}
	var offered []policy.Option
	for _, o := range p.Options {
		offered = append(offered, policy.Option{ID: o.ID, Kind: o.Kind, Name: o.Name})
	}
	d := policy.Decide(t.req.Turn.Write, op, offered)
	word := "reject"
	if d.Allow {
		word = "allow"
	}
	body := kernel.PermissionBody{Asked: clipTitle(asked), Resolved: clipTitle(strings.Join(op.Paths, ", ")), Decision: word, By: "policy", Kind: clipTitle(op.Kind)}
	if err := t.env.Note(ctx, kernel.PermissionRec, body); err != nil || d.Option == "" {
		return cancelled, nil
	}
	return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": d.Option}}, nil
}

// resolve gives the path a file system would end at.
func resolve(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if r, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(r, filepath.Base(path))
	}
	return filepath.Clean(path)
}

const maxReadFile = 8 << 20

// readFile serves a file of the workspace, and no other.
func (t *turn) readFile(params json.RawMessage) (any, error) {
	var p struct {
		Path  string `json:"path"`
		Line  int    `json:"line"`
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &jsonrpc.Error{Code: -32602, Message: "the request is malformed"}
	}
	refuse := func(why string) (any, error) { return nil, &jsonrpc.Error{Code: -32602, Message: why} }
	path := resolve(t.req.Workspace, p.Path)
	root := resolve(t.req.Workspace, ".")
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return refuse("the file is outside of the workspace")
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxReadFile {
		return refuse("there is no such file, or it is over 8 MiB")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return refuse("the file cannot be read")
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	if p.Line > 1 || p.Limit > 0 {
		lines := strings.SplitAfter(text, "\n")
		from := min(max(p.Line-1, 0), len(lines))
		to := len(lines)
		if p.Limit > 0 {
			to = min(from+p.Limit, to)
		}
		text = strings.Join(lines[from:to], "")
	}
	return map[string]any{"content": text}, nil
}
