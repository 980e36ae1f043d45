package host

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"witan/cmd/internal/config"
	"witan/kernel"
)

// Emit takes one line of an operation's output.
type Emit func(json.RawMessage) error

// op is one operation.
type op func(ctx context.Context, h *Host, args json.RawMessage, emit Emit) error

// operations is the one list of what a host can be asked.
func operations() map[string]op {
	return map[string]op{
		"run":           with(opRun),
		"watch":         with(opWatch),
		"resume":        with(opResume),
		"retry":         with(opRetry),
		"stop":          with(opStop),
		"runs":          with(opRuns),
		"run-show":      with(opRunShow),
		"conversations": with(opConversations),
		"show":          with(opShow),
		"rename":        with(opRename),
		"archive":       with(opArchive),
		"queue":         with(opQueue),
		"queue.add":     with(opQueueAdd),
		"queue.edit":    with(opQueueEdit),
		"queue.remove":  with(opQueueRemove),
		"queue.move":    with(opQueueMove),
		"queue.hold":    with(opQueueHold),
		"queue.release": with(opQueueRelease),
		"agents":        with(opAgents),
		"agents.doctor": with(opAgentsDoctor),
		"ledger":        with(opLedger),
		"ledger.verify": with(opLedgerVerify),
		"pack.ls":       with(opPackList),
		"pack.stat":     with(opPackStat),
		"pack.cat":      with(opPackCat),
		"stage":         with(opStage),
		"stage.list":    with(opStageList),
		"attach":        with(opAttach),
		"doctor":        with(opDoctor),
		"check":         with(opCheck),
		"backup":        with(opBackup),
		"compact":       with(opCompact),
		"outcomes":      with(opOutcomes),
		"adopt":         with(opAdopt),
		"gates":         with(opGates),
		"answer":        with(opAnswer),
	}
}

// with decodes an operation's arguments strictly.
func with[A any](f func(context.Context, *Host, A, Emit) error) op {
	return func(ctx context.Context, h *Host, raw json.RawMessage, emit Emit) error {
		var a A
		if len(raw) > 0 {
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&a); err != nil {
				return kernel.E("host.Call", kernel.Invalid, err, "the request is not understood").
					WithNext("use the same version of witan as the host")
			}
		}
		return f(ctx, h, a, emit)
	}
}

// Call runs one operation.
func (h *Host) Call(ctx context.Context, name string, args any, emit Emit) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	return h.call(ctx, name, raw, emit)
}

func (h *Host) call(ctx context.Context, name string, raw json.RawMessage, emit Emit) error {
	ops := operations()
	f, ok := ops[name]
	if !ok {
		return kernel.E("host.Call", kernel.Unsupported, nil, "operation %q is not in this version", name).
			WithNext("use the same version of witan as the host")
	}
	return f(ctx, h, raw, emit)
}

// give emits v as one line.
func give(emit Emit, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	return emit(bytes.TrimRight(b.Bytes(), "\n"))
}

// unknown is the error for a name that nothing has.
func unknown(what, name string, known []string) error {
	slices.Sort(known)
	e := kernel.E("host", kernel.NotFound, nil, "%s %q is unknown", what, name)
	if n := config.Near(name, known); n != "" {
		return e.WithNext("did you mean %q? known: %s", n, join(known))
	}
	return e.WithNext("known: %s", join(known))
}

func join(s []string) string {
	var b bytes.Buffer
	for i, v := range s {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == 20 {
			b.WriteString("…")
			break
		}
		b.WriteString(v)
	}
	return b.String()
}
