package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"witan/cmd/internal/host"
	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/kernel/plaintext"
)

func (a *app) gatesCmd() *cobra.Command {
	var args host.GatesArgs
	c := &cobra.Command{Use: "gates", Short: "List what waits for your answer", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.json {
				return a.list(c, "gates", args, "")
			}
			n := 0
			err := a.call(c.Context(), "gates", args, func(l json.RawMessage) error {
				n++
				g, err := readGate(l)
				if err == nil && args.Grants {
					g.Options = []kernel.GateOption{{ID: "revoke", Name: "Ask again from now on"}}
				}
				if err == nil {
					g.print(a.out)
				}
				return err
			})
			if err == nil && n == 0 {
				fmt.Fprintln(a.out, map[bool]string{false: "nothing waits for you", true: "nothing is allowed for a run"}[args.Grants])
			}
			return err
		}}
	c.Flags().BoolVar(&args.Grants, "grants", false, "list what answers allow for a whole run; answer GATE revoke takes it back")
	return c
}

func (a *app) answerCmd() *cobra.Command {
	var text string
	var same bool
	c := &cobra.Command{Use: "answer GATE OPTION", Short: "Answer a gate", Args: exactly(2, "a gate and an option"),
		RunE: func(c *cobra.Command, args []string) error {
			emit := a.raw
			if !a.json {
				emit = func(l json.RawMessage) error {
					var r struct {
						Option string `json:"option"`
						Run    string `json:"run"`
						Active bool   `json:"active"`
					}
					if err := json.Unmarshal(l, &r); err != nil {
						return err
					}
					next := "it goes on"
					if !r.Active {
						next = "go on with: witan resume " + r.Run
					}
					_, err := fmt.Fprintf(a.out, "answered %s; %s\n", r.Option, next)
					return err
				}
			}
			return a.call(c.Context(), "answer", host.AnswerArgs{Gate: args[0], Option: args[1], Text: text, Same: same}, emit)
		}}
	c.Flags().BoolVar(&same, "same", false, "and everything else that waits for the same operation of the same agent")
	c.Flags().StringVar(&text, "text", "", "what you say, where the gate asks for words")
	return c
}

// gate is a gate as lists and runs show it.
type gate struct {
	Type    string              `json:"type"`
	Gate    string              `json:"gate"`
	Kind    string              `json:"kind"`
	Run     string              `json:"run"`
	Agent   string              `json:"agent"`
	Attempt string              `json:"attempt"`
	Summary string              `json:"summary"`
	Target  string              `json:"target"`
	Options []kernel.GateOption `json:"options"`
}

func readGate(l json.RawMessage) (g gate, err error) {
	err = json.Unmarshal(l, &g)
	return g, err
}

func (g gate) print(w io.Writer) {
	who := g.Agent
	if who == "" {
		who = g.Run
	}
	fmt.Fprintf(w, "%s  %s, from %s\n    %s\n", g.Gate, g.Kind, who, plaintext.Clean(g.Summary))
	if g.Target != "" {
		fmt.Fprintf(w, "    on %s\n", plaintext.Clean(g.Target))
	}
	for _, o := range g.Options {
		fmt.Fprintf(w, "    witan answer %s %s   # %s\n", g.Gate, o.ID, plaintext.Clean(o.Name))
	}
}

// asker puts the gates of a run to the person at the terminal, one after the
// other, in the order in which they opened.
type asker struct {
	a    *app
	c    caller
	in   *bufio.Reader
	ctx  context.Context
	mu   sync.Mutex
	open []gate            // guarded by mu; not yet put
	gone map[string]bool   // guarded by mu; answered by somebody
	who  map[string]string // guarded by mu; the agent of an attempt
	busy bool              // guarded by mu
}

func newAsker(ctx context.Context, a *app, c caller) *asker {
	return &asker{a: a, c: c, ctx: ctx, in: bufio.NewReader(a.in), gone: map[string]bool{}, who: map[string]string{}}
}

// line looks at a line of the run for gates.
func (k *asker) line(l json.RawMessage) {
	g, err := readGate(l)
	if err != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch g.Type {
	case "attempt.queued":
		k.who[g.Attempt] = g.Agent
	case "gate.opened":
		g.Agent = k.who[g.Attempt]
		k.open = append(k.open, g)
		if !k.busy {
			k.busy = true
			go k.work()
		}
	case "gate.decided":
		k.gone[g.Gate] = true
	}
}

// work asks until nothing is open. It ends with the process at the latest: a
// terminal cannot be told to stop reading.
func (k *asker) work() {
	for {
		k.mu.Lock()
		if len(k.open) == 0 || k.ctx.Err() != nil {
			k.busy = false
			k.mu.Unlock()
			return
		}
		g := k.open[0]
		k.open = k.open[1:]
		gone := k.gone[g.Gate]
		k.mu.Unlock()
		if !gone {
			k.ask(g)
		}
	}
}

func (k *asker) ask(g gate) {
	w := k.a.err
	fmt.Fprintf(w, "\n%s asks: %s\n", orRun(g.Agent), plaintext.Clean(g.Summary))
	if g.Target != "" {
		fmt.Fprintf(w, "  on %s\n", plaintext.Clean(g.Target))
	}
	for i, o := range g.Options {
		fmt.Fprintf(w, "  %d  %s\n", i+1, plaintext.Clean(o.Name))
	}
	for k.ctx.Err() == nil {
		fmt.Fprint(w, "your choice: ")
		line, err := k.in.ReadString('\n')
		if err != nil {
			return // nobody is there any more; the gate stays open
		}
		o, text, ok := choice(g, strings.TrimSpace(line))
		if !ok {
			fmt.Fprintf(w, "choose 1 to %d\n", len(g.Options))
			continue
		}
		if o.Kind == "reply" && text == "" {
			fmt.Fprint(w, "your reply: ")
			if text, err = k.in.ReadString('\n'); err != nil {
				return
			}
		}
		err = k.c.Call(k.ctx, "answer", host.AnswerArgs{Gate: g.Gate, Option: o.ID, Text: strings.TrimSpace(text)}, func(json.RawMessage) error { return nil })
		if err != nil {
			fmt.Fprintln(w, "witan: "+say.Sentence(err))
		}
		return
	}
}

func orRun(agent string) string {
	if agent == "" {
		return "the run"
	}
	return agent
}

// choice reads an answer: a number, an option's id, or a number and a reply.
func choice(g gate, s string) (o kernel.GateOption, text string, ok bool) {
	word, text, _ := strings.Cut(s, " ")
	for i, o := range g.Options {
		if word == o.ID || word == strconv.Itoa(i+1) {
			return o, text, true
		}
	}
	return o, "", false
}
