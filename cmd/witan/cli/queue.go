package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"witan/cmd/internal/host"
	"witan/kernel"
	"witan/ui/term"
)

func (a *app) queueCmd() *cobra.Command {
	c := &cobra.Command{Use: "queue CONVERSATION", Short: "Show and change the messages that wait in a conversation",
		Long: `Show the messages that wait in a conversation, in the order in which they will be sent.

A long-lived host sends the next one when no run of the conversation is at work.
The queue pauses after a run that did not complete, and when the host was started
again; release goes on. An entry is named by its id, with or without its conversation.`,
		Args: exactly(1, "one conversation"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.queueRows(c, "queue", host.QueueArgs{Conversation: args[0]}, "nothing waits")
		}}
	c.AddCommand(a.queueAddCmd(), a.queueEditCmd(), a.queueMoveCmd(),
		a.queueEntryCmd("remove", "Take an entry out of the queue", false),
		a.queueEntryCmd("hold", "Let an entry wait, or all of a conversation", true),
		a.queueEntryCmd("release", "Let an entry be sent, or go on with a paused queue", true))
	return c
}

// queueRows prints entries, and why nothing is sent where that is so.
func (a *app) queueRows(c *cobra.Command, op string, args any, empty string) error {
	if a.json {
		return a.call(c.Context(), op, args, a.raw)
	}
	t := &term.Table{Out: a.out, Columns: []string{"position", "entry", "held", "text"}}
	var last host.QueueRow
	err := a.call(c.Context(), op, args, func(l json.RawMessage) error {
		if err := json.Unmarshal(l, &last); err != nil {
			return err
		}
		return t.Line(l)
	})
	if err != nil && last.Entry == "" {
		return err
	}
	if last.Entry != "" && last.Position == 0 {
		fmt.Fprintf(a.out, "%s is not in the queue any more\n", last.Entry)
	} else {
		t.Flush(empty)
	}
	if last.Paused {
		fmt.Fprintf(a.out, "the queue is paused: %s (%s); go on with witan queue release %s\n", last.Why, last.Reason, last.Conversation)
	}
	return err
}

func (a *app) queueAddCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{Use: "add CONVERSATION TEXT", Short: "Put a message at the end of the queue",
		Long: "Put a message at the end of the queue. TEXT - reads it from standard input. The options are those of run.",
		Args: exactly(2, "a conversation and a text"),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := a.task(args[1:])
			if err != nil {
				return err
			}
			f.conversation, f.mode = args[0], "work"
			if f.onGate, err = a.queuedGate(c, f.onGate); err != nil {
				return err
			}
			ra, err := f.args(text)
			if err != nil {
				return err
			}
			key := ra.Key
			ra.Key = ""
			return a.queueRows(c, "queue.add", host.QueueAddArgs{Run: ra, Key: key}, "")
		}}
	fl := c.Flags()
	onGateFlag(c, &f.onGate)
	fl.StringVar(&f.agents, "agents", "", "agents, separated by commas; auto picks them")
	fl.StringVar(&f.plan, "plan", "", "direct, batch, discuss or council")
	fl.StringVar(&f.form, "form", "", "of discuss: sequential or agent-led")
	fl.StringVar(&f.permission, "permission", "", "read-only, ask, auto or full")
	fl.StringVar(&f.commit, "commit", "", "record, apply or git")
	fl.StringVar(&f.isolation, "isolation", "", "auto or in-place")
	fl.StringVar(&f.pipeline, "pipeline", "", "pipeline file")
	fl.StringArrayVar(&f.verify, "verify", nil, "shell line run in a clean copy of the candidate; may be repeated")
	fl.StringVar(&f.key, "key", "", "idempotency key: the same key and text add one entry")
	return c
}

// queuedGate is what a queued run does at a gate: nobody is at the terminal then,
// so that it waits only when asked to.
func (a *app) queuedGate(c *cobra.Command, v string) (string, error) {
	if !c.Flags().Changed("on-gate") {
		return kernel.OnGateExit, nil
	}
	return a.onGate(c, v)
}

func (a *app) queueEditCmd() *cobra.Command {
	return &cobra.Command{Use: "edit [CONVERSATION] ENTRY TEXT", Short: "Give an entry another text",
		RunE: func(c *cobra.Command, args []string) error {
			q, rest, err := entryArgs(c, args, 1, "an entry and a text")
			if err != nil {
				return err
			}
			if q.Text, err = a.task(rest); err != nil {
				return err
			}
			return a.queueRows(c, "queue.edit", q, "")
		}}
}

func (a *app) queueMoveCmd() *cobra.Command {
	return &cobra.Command{Use: "move [CONVERSATION] ENTRY POSITION", Short: "Put an entry in another place, counted from 1",
		RunE: func(c *cobra.Command, args []string) error {
			q, rest, err := entryArgs(c, args, 1, "an entry and a position")
			if err != nil {
				return err
			}
			if q.Position, err = strconv.Atoi(rest[0]); err != nil || q.Position < 1 {
				return usage("position %q is not a number from 1", "see witan queue CONVERSATION", rest[0])
			}
			return a.queueRows(c, "queue.move", q, "")
		}}
}

// queueEntryCmd is a command on one entry; whole says that a conversation alone
// is possible too.
func (a *app) queueEntryCmd(name, short string, whole bool) *cobra.Command {
	use, what := name+" [CONVERSATION] ENTRY", "an entry"
	if whole {
		use, what = name+" CONVERSATION | [CONVERSATION] ENTRY", "a conversation or an entry"
	}
	return &cobra.Command{Use: use, Short: short,
		RunE: func(c *cobra.Command, args []string) error {
			if whole && len(args) == 1 && !strings.HasPrefix(args[0], kernel.EntryPrefix) {
				return a.queueRows(c, "queue."+name, host.QueueArgs{Conversation: args[0]}, "nothing waits")
			}
			q, _, err := entryArgs(c, args, 0, what)
			if err != nil {
				return err
			}
			return a.queueRows(c, "queue."+name, q, "")
		}}
}

// entryArgs reads [CONVERSATION] ENTRY and n more arguments.
func entryArgs(c *cobra.Command, args []string, n int, what string) (q host.QueueArgs, rest []string, err error) {
	switch len(args) {
	case n + 1:
		return host.QueueArgs{Entry: args[0]}, args[1:], nil
	case n + 2:
		return host.QueueArgs{Conversation: args[0], Entry: args[1]}, args[2:], nil
	}
	return q, nil, usage("%s takes %s", "see witan help "+strings.TrimPrefix(c.CommandPath(), "witan "), c.CommandPath(), what)
}
