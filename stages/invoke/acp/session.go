package acp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"witan/kernel"
	"witan/stages/invoke/jsonrpc"
)

// openSession gives the connection the session that the turn needs: the native
// one that want names, or a new one. A session gets the turn's tool servers when
// it is opened; one that is open already and cannot be loaded keeps those it has.
func (j *job) openSession(ctx context.Context, c *conn, want string) error {
	tools, err := servers(j.req.MCP)
	if err != nil {
		return err
	}
	params := map[string]any{"cwd": j.req.Workspace, "mcpServers": tools, "_meta": map[string]any{"witan": map[string]any{"state": j.req.State}}}
	switch {
	case want == "":
	case c.session == want && (c.tools == kernel.Sum(tools) || !c.load):
		return nil
	case c.load:
		if err := j.loadSession(ctx, c, want, params); err != nil {
			return err
		}
		c.tools = kernel.Sum(tools)
		return nil
	default:
		return j.sessionGone(ctx)
	}
	res, err := c.rpc.Call(ctx, "session/new", params)
	if err != nil {
		return err
	}
	var s struct {
		ID string `json:"sessionId"`
	}
	if err := json.Unmarshal(res, &s); err != nil || s.ID == "" {
		return &kernel.Failure{Class: kernel.ClassProtocol, Reason: "no_session", Text: "the agent opened no session"}
	}
	c.session, c.count, c.tools = s.ID, counter{known: true}, kernel.Sum(tools)
	return nil
}

// servers are tool servers as the protocol has them: what it calls stdio, which
// every agent knows. The order is fixed, so that equal servers give equal bytes.
func servers(offered []kernel.MCPServer) (json.RawMessage, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type server struct {
		Name    string     `json:"name"`
		Command string     `json:"command"`
		Args    []string   `json:"args"`
		Env     []variable `json:"env"`
	}
	all := []server{}
	for _, m := range offered {
		s := server{m.Name, m.Command, append([]string{}, m.Args...), []variable{}}
		for _, k := range slices.Sorted(maps.Keys(m.Env)) {
			s.Env = append(s.Env, variable{k, m.Env[k]})
		}
		all = append(all, s)
	}
	return kernel.Canonical(all)
}

// elsewhere are classes of a failed load that say nothing about the session.
var elsewhere = []string{kernel.ClassSignIn, kernel.ClassRateLimit, kernel.ClassNetwork, kernel.ClassTimeout}

func (j *job) loadSession(ctx context.Context, c *conn, want string, params map[string]any) error {
	params["sessionId"] = want
	_, err := c.rpc.Call(ctx, "session/load", params)
	var refused *jsonrpc.Error
	switch {
	case err == nil:
		c.session, c.count = want, counter{} // what it has counted so far is not known
		return nil
	case errors.As(err, &refused) && !slices.Contains(elsewhere, refusal(refused).Class):
		return j.sessionGone(ctx)
	}
	return err
}

// sessionGone forgets a dead session: the next try rebuilds it.
func (j *job) sessionGone(ctx context.Context) error {
	if err := j.forget(ctx); err != nil {
		return err
	}
	return &kernel.Failure{Class: kernel.ClassSession, Reason: "session_gone", Text: "earlier context is not available any more; it is rebuilt from the conversation"}
}

func (j *job) forget(ctx context.Context) error {
	err := j.a.cfg.Sessions.ForgetSession(context.WithoutCancel(ctx), j.req.Conversation, j.req.Owner)
	if kernel.IsKind(err, kernel.NotFound) {
		return nil
	}
	return err
}

// remember stores the session for the next turn of its owner.
func (j *job) remember(ctx context.Context, c *conn) {
	if j.req.Owner == "" {
		return
	}
	s := kernel.Session{Native: c.session, Workspace: j.req.Workspace, Seen: j.req.Turn.TurnSeq}
	if !c.load {
		s.Host = j.a.cfg.Instance
	}
	if err := j.a.cfg.Sessions.PutSession(context.WithoutCancel(ctx), j.req.Conversation, j.req.Owner, s); err != nil {
		j.env.Log.Error("session not stored", "err", err)
	}
}
