package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"witan/cmd/internal/config"
	"witan/cmd/internal/pipeline"
	"witan/kernel"
	"witan/kernel/engine"
)

// RunArgs is a submission as the command line gives it. Empty means: the
// conversation's, else the configuration's, else the built-in default.
type RunArgs struct {
	Text         string   `json:"text"`
	Dir          string   `json:"dir"` // absolute
	Agents       []string `json:"agents,omitempty"`
	Plan         string   `json:"plan,omitempty"`
	Permission   string   `json:"permission,omitempty"`
	Commit       string   `json:"commit,omitempty"`
	Isolation    string   `json:"isolation,omitempty"`
	Pipeline     string   `json:"pipeline,omitempty"` // file, absolute
	Conversation string   `json:"conversation,omitempty"`
	Verify       []string `json:"verify,omitempty"`
	Key          string   `json:"key,omitempty"`
	Form         string   `json:"form,omitempty"`    // of discuss
	OnGate       string   `json:"on_gate,omitempty"` // wait, exit, deny
	Detach       bool     `json:"detach,omitempty"`  // only run.created is given
}

// errEnough ends a watch that has shown what it should.
var errEnough = errors.New("enough")

func opRun(ctx context.Context, h *Host, a RunArgs, emit Emit) error {
	sub, err := h.submission(ctx, a)
	if err != nil {
		return err
	}
	run, again, err := h.engine.Submit(ctx, sub)
	if err != nil {
		return err
	}
	if a.Conversation != "" && !again {
		h.drain.wake(sub.Conversation, run)
	}
	return h.stream(ctx, run, 1, a.Detach, emit)
}

// stream shows a run; with first only its first line.
func (h *Host) stream(ctx context.Context, run kernel.RunID, from uint64, first bool, emit Emit) error {
	err := h.engine.Watch(ctx, run, from, func(l json.RawMessage) error {
		if err := emit(l); err != nil {
			return err
		}
		if first {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// submission fills in defaults and refuses what cannot work.
func (h *Host) submission(ctx context.Context, a RunArgs) (engine.Submission, error) {
	c := h.cfg
	body := kernel.CreatedBody{Plan: c.Run.Plan, Permission: c.Run.Permission, Concurrency: c.Run.Concurrency,
		MaxRounds: c.Run.MaxRounds, Attempts: c.Limits.Attempts, OnGate: a.OnGate, CommitGate: c.Run.CommitGate == "unverified"}
	agents := c.Run.Agents
	var members []kernel.AgentID
	if a.Conversation != "" {
		conv, err := h.conversation(ctx, a.Conversation)
		if err != nil {
			return engine.Submission{}, err
		}
		agents, members = nil, conv.Agents
		for _, m := range conv.Agents {
			agents = append(agents, string(m))
		}
		body.Plan, body.Permission = or(conv.Plan, body.Plan), or(conv.Permission, body.Permission)
		a.Dir = or(a.Dir, conv.Workspace)
	}
	body.Plan, body.Permission = or(a.Plan, body.Plan), or(a.Permission, body.Permission)
	if len(a.Agents) == 0 {
		a.Agents, a.Text = mentions(a.Text)
	}
	if len(a.Agents) > 0 {
		agents = a.Agents
	}
	if len(agents) == 0 {
		agents = builtinIDs()
	}
	var err error
	if slices.Equal(agents, []string{auto}) {
		body.Agents, body.Routing, err = h.pick(body.Plan, body.Permission != "read-only", members)
	} else {
		body.Agents, err = h.members(agents)
	}
	if err == nil && members != nil {
		err = sameMembers(body.Agents, members)
	}
	if err != nil {
		return engine.Submission{}, err
	}
	if err := h.modes(a, &body); err != nil {
		return engine.Submission{}, err
	}
	if body.Workspace, err = workspace(a.Dir); err != nil {
		return engine.Submission{}, err
	}
	if body.Budget, err = c.RunBudget(); err != nil {
		return engine.Submission{}, err
	}
	if body.Stages, err = h.stages(a, body.Plan); err != nil {
		return engine.Submission{}, err
	}
	return engine.Submission{Text: a.Text, Conversation: kernel.ConversationID(a.Conversation), Key: a.Key, Body: body}, nil
}

// members checks the targets: unknown or duplicate ones are refused, never dropped.
func (h *Host) members(ids []string) ([]kernel.AgentID, error) {
	var out []kernel.AgentID
	for _, id := range ids {
		id = strings.TrimPrefix(strings.TrimSpace(id), "@")
		aid := kernel.AgentID(id)
		if h.agent(aid) == nil {
			var known []string
			for _, k := range h.agents {
				known = append(known, string(k.ID))
			}
			return nil, unknown("agent", id, known)
		}
		if slices.Contains(out, aid) {
			return nil, kernel.E("host.members", kernel.Invalid, nil, "agent %q is named twice", id).WithNext("name it once")
		}
		out = append(out, aid)
	}
	return out, nil
}

// modes checks permission, commit and isolation against what this version does.
func (h *Host) modes(a RunArgs, body *kernel.CreatedBody) error {
	const op = "host.modes"
	commit, isolation := or(a.Commit, h.cfg.Run.Commit), or(a.Isolation, h.cfg.Run.Isolation)
	for _, v := range []struct {
		name, value string
		of          []string
	}{{"--plan", body.Plan, config.PlanNames}, {"--permission", body.Permission, config.Permissions},
		{"--commit", commit, config.Commits}, {"--isolation", isolation, config.Isolations}} {
		if !slices.Contains(v.of, v.value) {
			return kernel.E(op, kernel.Invalid, nil, "%s %q is unknown", v.name, v.value).
				WithNext("%s", config.OneOf(v.value, v.of))
		}
	}
	if body.Plan == "discuss" {
		body.Form = or(a.Form, "agent-led")
	} else if a.Form != "" {
		return kernel.E(op, kernel.Invalid, nil, "--form goes with plan discuss, not with %s", body.Plan).WithNext("leave it out")
	}
	body.InPlace = isolation == "in-place"
	body.Writable = []kernel.AgentID{}
	if body.Permission != "read-only" {
		for _, id := range body.Agents {
			// A built-in agent writes only as the finalizer of a council.
			if m := h.agent(id); m.Writable && (m.Protocol != "builtin" || body.Plan == "council") {
				body.Writable = append(body.Writable, id)
			}
		}
	}
	return nil
}

// workspace refuses a folder that is not one.
func workspace(dir string) (string, error) {
	const op = "host.workspace"
	if !filepath.IsAbs(dir) {
		return "", kernel.E(op, kernel.Invalid, nil, "workspace %q is not absolute", dir).WithNext("name a folder with -C")
	}
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", kernel.E(op, kernel.Invalid, nil, "workspace %s does not exist", dir).WithNext("name another folder with -C")
	case err != nil:
		return "", kernel.E(op, kernel.Invalid, err, "workspace %s cannot be read", dir).WithNext("check its permissions")
	case !fi.IsDir():
		return "", kernel.E(op, kernel.Invalid, nil, "workspace %s is a file", dir).WithNext("name a folder with -C")
	}
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		dir = r
	}
	return dir, nil
}

// effective is the pipeline of a run: file, then --commit and --verify on top.
func effective(c config.Config, reg kernel.Registry, a RunArgs, plan string) (*pipeline.Pipeline, error) {
	file := or(a.Pipeline, c.Pipeline.File)
	p := pipeline.For(plan)
	if file != "" {
		var err error
		if p, err = pipeline.Load(file, plan, reg); err != nil {
			return nil, err
		}
	}
	if commit := or(a.Commit, c.Run.Commit); a.Commit != "" || file == "" {
		p.SetCommit("commit/" + commit)
	}
	verify := c.Run.Verify
	if len(a.Verify) > 0 {
		verify = a.Verify
	}
	if len(verify) > 0 {
		if err := p.SetVerify(verify); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Pipeline is what a run without options of its own would go through; file, if
// there is one, goes before the configured one. It needs no host.
func Pipeline(o Options, file string) (*pipeline.Pipeline, error) {
	c, err := loadConfig(o)
	if err != nil {
		return nil, err
	}
	return effective(c, Registry(), RunArgs{Pipeline: file}, c.Run.Plan)
}

// stages are the stages of a run.
func (h *Host) stages(a RunArgs, plan string) (map[string]kernel.StageRef, error) {
	p, err := effective(h.cfg, h.engine.Registry, a, plan)
	if err != nil {
		return nil, err
	}
	if plan != "council" && p.Uses("verify/agents") {
		return nil, kernel.E("host.stages", kernel.Invalid, nil, "verify/agents needs a verification phase, which plan %s does not have", plan).
			WithNext("use --plan council, or another verify stage")
	}
	return p.Stages(h.engine.Registry)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// RunRef names a run; From is the first record to show.
type RunRef struct {
	Run    string   `json:"run"`
	From   uint64   `json:"from,omitempty"`
	Agents []string `json:"agents,omitempty"`
	Agent  string   `json:"agent,omitempty"`
	OnGate string   `json:"on_gate,omitempty"`
	Item   string   `json:"item,omitempty"` // of the agreed plan
}

func (h *Host) run(ctx context.Context, id string) (kernel.RunSummary, error) {
	if !kernel.ValidID(kernel.RunPrefix, id) {
		return kernel.RunSummary{}, kernel.E("host.run", kernel.NotFound, nil, "%q is not a run id", id).WithNext("see witan runs")
	}
	sum, err := h.store.Ledger.Summary(ctx, kernel.RunID(id))
	if kernel.IsKind(err, kernel.NotFound) {
		return sum, kernel.E("host.run", kernel.NotFound, nil, "run %s is unknown", id).WithNext("see witan runs")
	}
	return h.honest(sum), err
}

// inRun refuses an agent that the run does not have.
func inRun(sum kernel.RunSummary, agent string) error {
	if slices.Contains(sum.Agents, kernel.AgentID(agent)) {
		return nil
	}
	var known []string
	for _, id := range sum.Agents {
		known = append(known, string(id))
	}
	return kernel.E("host.inRun", kernel.NotFound, nil, "agent %q is not in run %s", agent, sum.Run).WithNext("its agents are %s", join(known))
}

// honest shows a run that nobody works on as what it is.
func (h *Host) honest(s kernel.RunSummary) kernel.RunSummary {
	if s.Status == kernel.RunRunning && !h.engine.Active(s.Run) {
		s.Status, s.Reason = kernel.RunInterruptedSt, "host_gone"
	}
	return s
}

func opWatch(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	if _, err := h.run(ctx, a.Run); err != nil {
		return err
	}
	return h.stream(ctx, kernel.RunID(a.Run), max(1, a.From), false, emit)
}

func opResume(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	return h.reopen(ctx, a, "resume", emit)
}

func opRetry(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	return h.reopen(ctx, a, "retry", emit)
}

func (h *Host) reopen(ctx context.Context, a RunRef, by string, emit Emit) error {
	sum, err := h.run(ctx, a.Run)
	if err != nil {
		return err
	}
	head, err := h.store.Ledger.Head(ctx, kernel.RunID(a.Run))
	if err != nil {
		return err
	}
	b := kernel.ResumedBody{By: by, OnGate: a.OnGate}
	for _, id := range a.Agents {
		if err := inRun(sum, id); err != nil {
			return err
		}
		b.Agents = append(b.Agents, kernel.AgentID(id))
	}
	if err := h.engine.Reopen(ctx, kernel.RunID(a.Run), b); err != nil {
		return err
	}
	h.drain.wake(sum.Conversation, sum.Run)
	return h.stream(ctx, kernel.RunID(a.Run), head.Seq+1, false, emit)
}

// owner is who works on an item at this moment.
func (h *Host) owner(ctx context.Context, a RunRef) (string, error) {
	s, _, err := h.engine.Load(ctx, kernel.RunID(a.Run))
	if err != nil {
		return "", err
	}
	if ph := s.Phase(); ph != nil && !ph.Finished && s.Finished == nil {
		for _, sl := range ph.Slots {
			if sl.Item == a.Item && (a.Agent == "" || a.Agent == string(sl.Agent)) {
				return string(sl.Agent), nil
			}
		}
	}
	return "", kernel.E("host.stop", kernel.NotFound, nil, "nobody works on item %q of run %s", a.Item, a.Run).WithNext("see witan run-show %s", a.Run)
}

// opStop returns when the stop is durable; what runs is then on its way down.
func opStop(ctx context.Context, h *Host, a RunRef, emit Emit) error {
	sum, err := h.run(ctx, a.Run)
	if err != nil {
		return err
	}
	if a.Agent != "" {
		if err := inRun(sum, a.Agent); err != nil {
			return err
		}
	}
	if a.Item != "" {
		if a.Agent, err = h.owner(ctx, a); err != nil {
			return err
		}
	}
	if err := h.engine.Stop(ctx, kernel.RunID(a.Run), kernel.AgentID(a.Agent), "person"); err != nil {
		return err
	}
	if a.Agent == "" {
		if err := h.engine.Wait(ctx, kernel.RunID(a.Run)); err != nil {
			return err
		}
		if sum, err = h.run(ctx, a.Run); err != nil {
			return err
		}
	}
	return give(emit, sum)
}
