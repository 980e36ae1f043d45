package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"witan/cmd/internal/host"
	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/stages/invoke/council"
	"witan/ui/term"
)

// commands is the one list of what this version has.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.runCmd(), a.runsCmd(), a.runShowCmd(),
		a.reopenCmd("resume", "Go on with an interrupted, parked or stopped run"), a.retryCmd(), a.stopCmd(),
		a.gatesCmd(), a.answerCmd(),
		a.conversationsCmd(), a.showCmd(), a.renameCmd(), a.archiveCmd(), a.queueCmd(),
		a.agentsCmd(), a.outcomesCmd(), a.adoptCmd(), a.ledgerCmd(), a.packCmd(), a.stageCmd(), a.pipelineCmd(),
		a.checkCmd(), a.backupCmd(), a.restoreCmd(), a.compactCmd(),
		a.councilToolsCmd(), a.serveCmd(), a.attachCmd(), a.uiCmd(), a.doctorCmd(), a.versionCmd(), a.completionCmd(), a.manCmd(),
	}
}

// laterCmds are the commands of the contract that this version does not have:
// not listed, and saying so whatever they are called with.
func laterCmds(names ...string) []*cobra.Command {
	var out []*cobra.Command
	for _, n := range names {
		out = append(out, &cobra.Command{Use: n, Hidden: true, DisableFlagParsing: true,
			RunE: func(c *cobra.Command, _ []string) error {
				return later(strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "))
			}})
	}
	return out
}

func later(name string) error {
	return kernel.E("cli", kernel.Unsupported, nil, "%s: not in this version", name).WithNext("see witan help for what is")
}

// exactly checks the number of arguments with a sentence of ours.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s", "see witan help "+c.Name(), c.CommandPath(), what)
		}
		return nil
	}
}

// list runs an operation and prints its rows as a table, or as they are.
func (a *app) list(c *cobra.Command, op string, args any, empty string, columns ...string) error {
	t := &term.Table{Out: a.out, Columns: columns}
	emit := t.Line
	if a.json {
		emit = a.raw
	}
	if err := a.call(c.Context(), op, args, emit); err != nil {
		if !a.json && say.Code(err) == say.NotHold {
			t.Flush("") // what does hold; that there is nothing is not known
		}
		return err
	}
	if !a.json {
		t.Flush(empty)
	}
	return nil
}

func (a *app) runsCmd() *cobra.Command {
	var conv string
	c := &cobra.Command{Use: "runs", Short: "List runs", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "runs", host.ListArgs{Conversation: conv}, "no runs yet (start one with witan run)",
				"run", "status", "plan", "agents", "title")
		}}
	c.Flags().StringVar(&conv, "conversation", "", "only of this conversation")
	return c
}

func (a *app) runShowCmd() *cobra.Command {
	return &cobra.Command{Use: "run-show RUN", Short: "Show a run and its records", Args: exactly(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			if a.json {
				return a.call(c.Context(), "run-show", host.RunRef{Run: args[0]}, a.raw)
			}
			r := &term.Run{Out: a.out, Err: a.out}
			return a.call(c.Context(), "run-show", host.RunRef{Run: args[0]}, r.Line)
		}}
}

func (a *app) reopenCmd(name, short string) *cobra.Command {
	var onGate string
	c := &cobra.Command{Use: name + " RUN", Short: short, Args: exactly(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			g, err := a.onGate(c, onGate)
			if err != nil {
				return err
			}
			return a.stream(c.Context(), name, host.RunRef{Run: args[0], OnGate: g})
		}}
	onGateFlag(c, &onGate)
	return c
}

func (a *app) retryCmd() *cobra.Command {
	var agent, onGate string
	c := &cobra.Command{Use: "retry RUN", Short: "Try the agents of a run again that did not answer", Args: exactly(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			g, err := a.onGate(c, onGate)
			if err != nil {
				return err
			}
			ref := host.RunRef{Run: args[0], OnGate: g}
			if agent != "" {
				ref.Agents = []string{agent}
			}
			return a.stream(c.Context(), "retry", ref)
		}}
	c.Flags().StringVar(&agent, "agent", "", "only this agent")
	onGateFlag(c, &onGate)
	return c
}

func (a *app) stopCmd() *cobra.Command {
	var agent, item string
	c := &cobra.Command{Use: "stop RUN", Short: "Stop a run, or one agent of it", Args: exactly(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			emit := a.raw
			if !a.json {
				emit = func(l json.RawMessage) error {
					var s kernel.RunSummary
					if err := json.Unmarshal(l, &s); err != nil {
						return err
					}
					_, err := fmt.Fprintf(a.out, "%s %s\n", s.Run, s.Status)
					return err
				}
			}
			return a.call(c.Context(), "stop", host.RunRef{Run: args[0], Agent: agent, Item: item}, emit)
		}}
	c.Flags().StringVar(&agent, "agent", "", "only this agent")
	c.Flags().StringVar(&item, "item", "", "only this work item")
	return c
}

func (a *app) conversationsCmd() *cobra.Command {
	return &cobra.Command{Use: "conversations", Short: "List conversations", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "conversations", host.ListArgs{}, "no conversations yet (start one with witan run)",
				"conversation", "title", "workspace", "agents", "messages")
		}}
}

func (a *app) showCmd() *cobra.Command {
	return &cobra.Command{Use: "show CONVERSATION", Short: "Show the messages of a conversation", Args: exactly(1, "one conversation"),
		RunE: func(c *cobra.Command, args []string) error {
			emit := a.raw
			if !a.json {
				emit = term.Message(a.out)
			}
			return a.call(c.Context(), "show", host.ConversationArgs{Conversation: args[0]}, emit)
		}}
}

func (a *app) renameCmd() *cobra.Command {
	return &cobra.Command{Use: "rename CONVERSATION TITLE", Short: "Give a conversation another title", Args: exactly(2, "a conversation and a title"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "rename", host.ConversationArgs{Conversation: args[0], Title: args[1]}, "", "conversation", "title")
		}}
}

func (a *app) archiveCmd() *cobra.Command {
	var undo bool
	c := &cobra.Command{Use: "archive CONVERSATION", Short: "Move a conversation out of the way", Args: exactly(1, "one conversation"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "archive", host.ConversationArgs{Conversation: args[0], Archived: !undo}, "", "conversation", "title", "archived")
		}}
	c.Flags().BoolVar(&undo, "undo", false, "bring it back")
	return c
}

func (a *app) agentsCmd() *cobra.Command {
	c := &cobra.Command{Use: "agents", Short: "List agents and what they need", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "agents", struct{}{}, "", "agent", "name", "protocol", "version", "status", "next")
		}}
	c.AddCommand(&cobra.Command{Use: "doctor [AGENT]", Short: "Look closer at agents", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "agents.doctor", host.AgentRef{Agent: strings.Join(args, "")}, "", "agent", "status", "reason", "next")
		}})
	c.AddCommand(laterCmds("install")...)
	return c
}

func (a *app) outcomesCmd() *cobra.Command {
	return &cobra.Command{Use: "outcomes RUN", Short: "List findings, evidence, artifacts and verdicts of a run", Args: exactly(1, "one run"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "outcomes", host.RunRef{Run: args[0]}, "no outcomes", "type", "severity", "level", "path", "line", "title", "summary", "verdict", "id", "state")
		}}
}

func (a *app) adoptCmd() *cobra.Command {
	return &cobra.Command{Use: "adopt FINDING accept|reject|reopen", Short: "Say what becomes of a finding", Args: exactly(2, "a finding and a decision"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "adopt", host.AdoptArgs{Finding: args[0], Word: args[1]}, "", "id", "state", "by")
		}}
}

func (a *app) ledgerCmd() *cobra.Command {
	c := &cobra.Command{Use: "ledger RUN | verify [RUN]", Short: "Show a run's ledger, or check that all hold", Args: exactly(1, "one run, or verify"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "ledger", host.RunRef{Run: args[0]}, "", "seq", "kind", "stage", "attempt", "hash", "at")
		}}
	c.AddCommand(&cobra.Command{Use: "verify [RUN]", Short: "Check hashes and chains", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "ledger.verify", host.RunRef{Run: strings.Join(args, "")}, "no runs yet", "run", "ok", "records", "first_bad", "reason")
		}})
	return c
}

func (a *app) packCmd() *cobra.Command {
	c := &cobra.Command{Use: "pack", Short: "Look into the content-addressed store", Args: exactly(0, "ls, cat or stat"),
		RunE: func(*cobra.Command, []string) error {
			return usage("pack needs ls, cat or stat", "see witan help pack")
		}}
	c.AddCommand(
		&cobra.Command{Use: "ls", Short: "List packs", Args: exactly(0, "no arguments"), RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "pack.ls", host.PackArgs{}, "no packs yet", "hash", "kind", "bytes", "stored")
		}},
		&cobra.Command{Use: "stat HASH", Short: "Describe a pack", Args: exactly(1, "one hash"), RunE: func(c *cobra.Command, args []string) error {
			return a.list(c, "pack.stat", host.PackArgs{Hash: args[0]}, "", "hash", "kind", "bytes", "stored", "refs")
		}},
		&cobra.Command{Use: "cat HASH", Short: "Print a pack's bytes", Args: exactly(1, "one hash"), RunE: func(c *cobra.Command, args []string) error {
			if a.json {
				return a.call(c.Context(), "pack.cat", host.PackArgs{Hash: args[0]}, a.raw)
			}
			return a.call(c.Context(), "pack.cat", host.PackArgs{Hash: args[0]}, func(l json.RawMessage) error {
				var p struct {
					Data string `json:"data"`
				}
				if err := json.Unmarshal(l, &p); err != nil {
					return err
				}
				b, err := base64.StdEncoding.DecodeString(p.Data)
				if err == nil {
					_, err = a.out.Write(b)
				}
				return err
			})
		}})
	return c
}

func (a *app) doctorCmd() *cobra.Command {
	return &cobra.Command{Use: "doctor", Short: "See what is ready and what is missing", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "doctor", struct{}{}, "", "check", "ok", "text", "next")
		}}
}

// councilToolsCmd is what agents start to reach the tools of their turn.
func (a *app) councilToolsCmd() *cobra.Command {
	return &cobra.Command{Use: council.Argument, Short: "Carry an agent's tool calls to its host", Hidden: true, Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return council.Relay(c.Context(), os.Getenv, a.in, a.out) }}
}

func (a *app) versionCmd() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print versions", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			v := host.VersionRow(Version, Commit)
			if a.json {
				return a.row(v)
			}
			_, err := fmt.Fprintf(a.out, "witan %s (%s), schema %d, protocol %d\n", v.Version, v.Commit, v.Schema, v.Protocol)
			return err
		}}
}

func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{Use: "completion bash|zsh|fish|powershell", Short: "Print a shell completion script", Args: exactly(1, "the name of a shell"),
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer) error{
				"bash":       func(w io.Writer) error { return c.Root().GenBashCompletionV2(w, true) },
				"zsh":        c.Root().GenZshCompletion,
				"fish":       func(w io.Writer) error { return c.Root().GenFishCompletion(w, true) },
				"powershell": c.Root().GenPowerShellCompletionWithDesc,
			}[args[0]]
			if !ok {
				return usage("shell %q is unknown", "use bash, zsh, fish or powershell", args[0])
			}
			return a.document(write, func(text string) any {
				return struct {
					Shell  string `json:"shell"`
					Script string `json:"script"`
				}{args[0], text}
			})
		}}
}

func (a *app) helpCmd() *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "Help on a command",
		RunE: func(c *cobra.Command, args []string) error {
			cmd, rest, err := c.Root().Find(args)
			switch {
			case err == nil && cmd.Hidden && cmd.DisableFlagParsing: // of a later version
				return cmd.RunE(cmd, nil)
			case err != nil || len(rest) > 0:
				return a.unknown(c.Root(), strings.Join(args, " "))
			}
			return cmd.Help()
		}}
}
