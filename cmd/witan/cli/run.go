package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"witan/cmd/internal/host"
	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/ui/term"
)

// maxStdin bounds a task read from standard input, in bytes; the engine's own
// limit is in characters and far below.
const maxStdin = 1 << 20

type runFlags struct {
	dir, agents, plan, permission, commit, isolation, pipeline, conversation, key, onGate, mode, form string
	verify, attach, skill, knowledge                                                                  []string
	detach                                                                                            bool
}

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [flags] TEXT",
		Short: "Submit one task and show it until it ends",
		Long:  "Submit one task and show it until it ends. TEXT - reads the task from standard input.",
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			if f.onGate, err = a.onGate(c, f.onGate); err != nil {
				return err
			}
			return a.run(c.Context(), f, args)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.dir, "dir", "C", "", "workspace folder (default: the conversation's, else the current one)")
	fl.StringVar(&f.agents, "agents", "", "agents, separated by commas; auto picks them")
	fl.StringVar(&f.plan, "plan", "", "direct, batch, discuss or council")
	fl.StringVar(&f.permission, "permission", "", "read-only, ask, auto or full")
	fl.StringVar(&f.commit, "commit", "", "record, apply or git")
	fl.StringVar(&f.isolation, "isolation", "", "auto or in-place")
	fl.StringVar(&f.pipeline, "pipeline", "", "pipeline file")
	fl.StringVar(&f.conversation, "conversation", "", "go on with this conversation")
	fl.StringArrayVar(&f.verify, "verify", nil, "shell line run in a clean copy of the candidate; may be repeated")
	fl.StringVar(&f.key, "key", "", "idempotency key: the same key and text give the same run")
	onGateFlag(c, &f.onGate)
	fl.BoolVar(&f.detach, "detach", false, "print run.created only and leave the run to a long-lived host")
	fl.StringVar(&f.mode, "mode", "work", "work")
	fl.StringVar(&f.form, "form", "", "of discuss: sequential or agent-led")
	fl.StringArrayVar(&f.attach, "attach", nil, "attach a file")
	fl.StringArrayVar(&f.skill, "skill", nil, "use a skill")
	fl.StringArrayVar(&f.knowledge, "knowledge", nil, "use a knowledge source")
	for _, hide := range []string{"mode", "attach", "skill", "knowledge"} {
		_ = fl.MarkHidden(hide)
	}
	return c
}

func (a *app) run(ctx context.Context, f runFlags, args []string) error {
	text, err := a.task(args)
	if err != nil {
		return err
	}
	ra, err := f.args(text)
	if err != nil {
		return err
	}
	if f.detach {
		if err := a.ensureServing(ctx); err != nil {
			return err
		}
	}
	return a.stream(ctx, "run", ra)
}

func onGateFlag(c *cobra.Command, v *string) {
	c.Flags().StringVar(v, "on-gate", "exit", "wait, exit or deny when a gate opens and nobody can be asked at a terminal")
}

// onGate is what a run does at a gate: with a person at the terminal it waits
// for the answer, unless something else is asked for.
func (a *app) onGate(c *cobra.Command, v string) (string, error) {
	if !slices.Contains([]string{kernel.OnGateWait, kernel.OnGateExit, kernel.OnGateDeny}, v) {
		return "", usage("--on-gate %q is unknown", "use wait, exit or deny", v)
	}
	if !c.Flags().Changed("on-gate") && a.attended() {
		v = kernel.OnGateWait
	}
	return v, nil
}

// attended reports whether a person can be asked here.
func (a *app) attended() bool {
	in, ok := a.in.(*os.File)
	return ok && isTTY(in) && isTTY(a.err) && !a.json
}

// task is TEXT, or standard input for "-".
func (a *app) task(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", usage("there is no task", `give it as text: witan run "…", or - to read it from standard input`)
	case len(args) > 1:
		return "", usage("the task is %d arguments, not one", "put it in quotes", len(args))
	case args[0] != "-":
		return utf8Task(args[0])
	}
	b, err := io.ReadAll(io.LimitReader(a.in, maxStdin+1))
	if err != nil {
		return "", kernel.E("cli", kernel.Invalid, err, "the task cannot be read from standard input")
	}
	if len(b) > maxStdin {
		return "", usage("the task is over 1 MiB", "put the long part into a file and attach it")
	}
	return utf8Task(strings.TrimRight(string(b), "\r\n"))
}

func utf8Task(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", usage("the task is not UTF-8 text", "attach the file, or convert it")
	}
	return s, nil
}

func (f runFlags) args(text string) (host.RunArgs, error) {
	var none host.RunArgs
	for name, set := range map[string]bool{"--attach": len(f.attach) > 0, "--skill": len(f.skill) > 0,
		"--knowledge": len(f.knowledge) > 0, "--mode " + f.mode: f.mode != "work"} {
		if set {
			return none, kernel.E("cli", kernel.Unsupported, nil, "%s: not in this version", name).WithNext("leave it out")
		}
	}
	ra := host.RunArgs{Text: text, Plan: f.plan, Permission: f.permission, Commit: f.commit, Isolation: f.isolation,
		Conversation: f.conversation, Key: f.key, Detach: f.detach, Form: f.form, OnGate: f.onGate}
	for _, id := range strings.Split(f.agents, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ra.Agents = append(ra.Agents, id)
		}
	}
	dir := f.dir
	if dir == "" && f.conversation == "" {
		dir = "."
	}
	var err error
	if dir != "" {
		if ra.Dir, err = filepath.Abs(dir); err != nil {
			return none, err
		}
	}
	if f.pipeline != "" {
		if ra.Pipeline, err = filepath.Abs(f.pipeline); err != nil {
			return none, err
		}
	}
	ra.Verify = f.verify
	return ra, nil
}

// stream calls an operation that gives a run's lines, shows them, and turns how
// the run ended into the exit code. An interrupt asks the run to stop; a second
// one leaves at once.
func (a *app) stream(ctx context.Context, op string, args any) (err error) {
	c, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r := &term.Run{Out: a.out, Err: a.err, TTY: !a.json && isTTY(a.err), Color: isTTY(a.out)}
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	seen := &tracker{}
	defer onInterrupt(ctx, c, seen, cancel)()
	ask := func(json.RawMessage) {}
	if a.attended() {
		ask = newAsker(call, a, c).line
	}
	err = c.Call(call, op, args, func(l json.RawMessage) error {
		seen.line(l)
		ask(l)
		if a.json {
			return a.raw(l)
		}
		return r.Line(l)
	})
	if err != nil {
		return err
	}
	status, reason := seen.end()
	if code := say.RunCode(status, reason); code != say.Done {
		return &say.Exit{Code: code}
	}
	return nil
}
