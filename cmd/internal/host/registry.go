package host

import (
	"path/filepath"
	"strconv"

	"witan/kernel"
	"witan/stages/commit"
	"witan/stages/deliver"
	"witan/stages/external"
	"witan/stages/freeze"
	"witan/stages/invoke"
	"witan/stages/receipt"
	"witan/stages/verify"
)

// wiring is what stages need of a host; its zero value wires a registry that
// can be listed and checked against, not run.
type wiring struct {
	run     kernel.Runner
	cache   kernel.StatCache
	conv    kernel.Conversations
	scratch string
	invoke  invoke.Config
}

// Registry lists all stages, for checking pipeline files without a host.
func Registry() kernel.Registry { return wiring{}.registry() }

// registry is the one list of stages.
func (w wiring) registry() kernel.Registry {
	var reg kernel.Registry
	look := func(id string) (kernel.Node, bool) { return reg.Lookup(id) }
	reg = reg.With(
		kernel.Erase(freeze.Workspace(w.run, w.cache)), kernel.Erase(freeze.None()),
		kernel.Erase(external.New[kernel.Task, kernel.Snapshot]("freeze", w.run)),
		kernel.Erase(deliver.New()), kernel.Erase(external.New[kernel.Turn, kernel.Delivery]("deliver", w.run)),
		kernel.Erase(invoke.New(w.invoke)),
		kernel.Erase(receipt.Strict()), kernel.Erase(receipt.Lenient()), kernel.Erase(receipt.None()),
		kernel.Erase(external.New[kernel.Reply, kernel.Claim]("receipt", w.run)),
		kernel.Erase(verify.None()), kernel.Erase(verify.Agents()), kernel.Erase(verify.Command(w.run, w.scratch)), kernel.Erase(verify.Schema(w.run, w.scratch)), kernel.Erase(verify.AllOf(look)),
		kernel.Erase(external.New[kernel.Claim, kernel.Verdict]("verify", w.run)),
		kernel.Erase(commit.Record(w.conv)), kernel.Erase(commit.Apply(w.conv, w.run)), kernel.Erase(commit.Git(w.conv, w.run)),
	)
	return reg
}

func (h *Host) registry() kernel.Registry {
	return wiring{run: h.runner(), cache: h.store.Packs, conv: h.store.Conversations, scratch: filepath.Join(h.opts.Home, "scratch"),
		invoke: invoke.Config{
			Look: func(id kernel.AgentID) (kernel.Invoker, bool) {
				m := h.agent(id)
				if m == nil {
					return nil, false
				}
				return m.invoker, true
			},
			State: func(t kernel.Turn) string {
				return filepath.Join(h.opts.Home, "turns", string(t.Run), t.Phase+"-"+strconv.Itoa(t.Round)+"-"+strconv.Itoa(t.Slot+1))
			},
			Deny:   h.cfg.Run.Deny,
			Places: h.place,
			Tools:  h.tools.tools,
			Forget: h.store.Conversations.ForgetSession,
		}}.registry()
}
