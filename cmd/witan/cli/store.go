package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"witan/cmd/internal/client"
	"witan/cmd/internal/host"
	"witan/cmd/internal/pipeline"
	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/ui/term"
)

func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("over %d bytes", limit)
	}
	return b, err
}

const maxStageInput = 64 << 20

func (a *app) stageCmd() *cobra.Command {
	c := &cobra.Command{Use: "stage NAME < in.json > out.json", Short: "Run one stage alone", Args: exactly(1, "the name of a stage, or list"),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := readAll(a.in, maxStageInput)
			if err != nil {
				return kernel.E("cli", kernel.Invalid, err, "the input cannot be read").WithNext("give at most 64 MiB of JSON on standard input")
			}
			if !json.Valid(in) {
				return usage("the input is not JSON", fmt.Sprintf(`give {"version":1,"stage":%q,"options":{},"in":{…}}`, args[0]))
			}
			return a.call(c.Context(), "stage", host.StageArgs{Name: args[0], Input: in}, a.raw)
		}}
	c.AddCommand(&cobra.Command{Use: "list", Short: "List stages with version, class and schemas (--json)", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "stage.list", struct{}{}, "", "stage", "version", "class", "touches", "doc")
		}})
	return c
}

func (a *app) pipelineCmd() *cobra.Command {
	c := &cobra.Command{Use: "pipeline", Short: "Print or validate a pipeline file", Args: exactly(0, "show or check"),
		RunE: func(*cobra.Command, []string) error {
			return usage("pipeline needs show or check", "see witan help pipeline")
		}}
	c.AddCommand(
		&cobra.Command{Use: "show [FILE]", Short: "Print the effective pipeline", Args: cobra.MaximumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				dir, err := a.dataDir()
				if err != nil {
					return err
				}
				p, err := host.Pipeline(a.hostOptions(dir, false), strings.Join(args, ""))
				if err != nil {
					return err
				}
				if !a.json {
					return p.Show(a.out)
				}
				for _, row := range p.Rows() {
					if err := a.row(row); err != nil {
						return err
					}
				}
				return nil
			}},
		&cobra.Command{Use: "check FILE", Short: "Validate a pipeline file", Args: exactly(1, "one file"),
			RunE: func(c *cobra.Command, args []string) error {
				if _, err := pipeline.Load(args[0], "batch", host.Registry()); err != nil {
					return err
				}
				if a.json {
					return a.row(struct {
						File string `json:"file"`
						OK   bool   `json:"ok"`
					}{args[0], true})
				}
				_, err := fmt.Fprintln(a.out, "ok")
				return err
			}})
	return c
}

func (a *app) checkCmd() *cobra.Command {
	return &cobra.Command{Use: "check", Short: "Check everything stored; changes nothing", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.dataDir()
			if err != nil {
				return err
			}
			damaged := 0
			emit := func(l json.RawMessage) error {
				var row struct {
					Damaged *int   `json:"damaged"`
					Checked int    `json:"checked"`
					Kind    string `json:"kind"`
					ID      string `json:"id"`
					File    string `json:"file"`
					Reason  string `json:"reason"`
				}
				if err := json.Unmarshal(l, &row); err != nil {
					return err
				}
				if row.Damaged != nil {
					damaged = *row.Damaged
				}
				if a.json {
					return a.raw(l)
				}
				if row.Damaged != nil {
					_, err := fmt.Fprintf(a.out, "%d damaged, %d checked\n", *row.Damaged, row.Checked)
					return err
				}
				_, err := fmt.Fprintf(a.out, "damaged %s %s %s: %s\n", row.Kind, row.ID, row.File, row.Reason)
				return err
			}
			if err := host.Check(c.Context(), a.hostOptions(dir, false), emit); err != nil {
				return err
			}
			if damaged > 0 {
				return &say.Exit{Code: say.NotHold}
			}
			return nil
		}}
}

func (a *app) backupCmd() *cobra.Command {
	return &cobra.Command{Use: "backup FILE", Short: "Write everything stored into one file", Args: exactly(1, "one file"),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return a.list(c, "backup", host.FileArgs{File: file}, "", "file", "bytes", "entries")
		}}
}

func (a *app) restoreCmd() *cobra.Command {
	return &cobra.Command{Use: "restore FILE", Short: "Make a new data directory from a backup", Args: exactly(1, "one file"),
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := a.dataDir()
			if err != nil {
				return err
			}
			file, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if err := host.Restore(c.Context(), a.hostOptions(dir, false), file); err != nil {
				return err
			}
			if a.json {
				return a.row(struct {
					File string `json:"file"`
					Home string `json:"home"`
				}{file, dir})
			}
			_, err = fmt.Fprintf(a.out, "restored into %s\n", dir)
			return err
		}}
}

func (a *app) compactCmd() *cobra.Command {
	return &cobra.Command{Use: "compact", Short: "Give unused disk space back", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.list(c, "compact", struct{}{}, "", "before", "after")
		}}
}

func (a *app) serveCmd() *cobra.Command {
	return &cobra.Command{Use: "serve", Short: "Be a long-lived host until interrupted", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			dir, err := a.dataDir()
			if err != nil {
				return err
			}
			if a.noHost {
				return kernel.E("cli", kernel.Locked, nil, "serve is a host, which --no-host refuses").WithNext("leave out --no-host")
			}
			h, err := host.Open(c.Context(), a.hostOptions(dir, true))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			if a.json {
				err = a.raw(json.RawMessage(`{"type":"serving"}`))
			} else {
				_, err = fmt.Fprintf(a.err, "serving %s; interrupt to end\n", dir)
			}
			if err != nil {
				return err
			}
			<-c.Context().Done()
			return nil
		}}
}

const servingWait = 30 * time.Second

// ensureServing finds a long-lived host or starts one. A host that somebody else
// is just starting, or that is about to end, is waited for.
func (a *app) ensureServing(ctx context.Context) error {
	dir, err := a.dataDir()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(servingWait)
	for pause := lockPause; ; pause = min(2*pause, time.Second) {
		if c, err := client.Dial(ctx, dir, Version); err == nil && c.Host.Serving {
			return nil
		}
		if a.noHost {
			return kernel.E("cli", kernel.Locked, nil, "no long-lived host is running for %s", dir).WithNext("start one with witan serve")
		}
		if err := a.startServing(ctx, dir); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return kernel.E("cli", kernel.Unavailable, nil, "the host does not start").WithNext("run witan serve to see why")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// startServing starts a host and returns when it accepts commands or has given up.
func (a *app) startServing(ctx context.Context, dir string) error {
	args := []string{"serve", "--json", "--home", dir}
	if a.cfg != "" {
		args = append(args, "--config", a.cfg)
	}
	out, err := proc.StartDetached(args...)
	if err != nil {
		return kernel.E("cli", kernel.Internal, err, "the host cannot be started")
	}
	defer out.Close()
	line := make(chan struct{})
	go func() {
		var b [64]byte
		_, _ = out.Read(b[:]) // its one line, or its end
		close(line)
	}()
	select {
	case <-line:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (a *app) attachCmd() *cobra.Command {
	return &cobra.Command{Use: "attach CONVERSATION", Short: "Follow a conversation until interrupted", Args: exactly(1, "one conversation"),
		RunE: func(c *cobra.Command, args []string) error {
			emit := a.raw
			if !a.json {
				r := &term.Run{Out: a.out, Err: a.err, TTY: isTTY(a.err)}
				emit = r.Line
			}
			err := a.call(c.Context(), "attach", host.ConversationArgs{Conversation: args[0]}, emit)
			if c.Context().Err() != nil {
				return nil // the view was closed; nothing else happened
			}
			return err
		}}
}

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{Use: "man", Short: "Print the man page", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.document(func(w io.Writer) error { return manPage(c.Root(), w) }, func(text string) any {
				return struct {
					Page string `json:"page"`
				}{text}
			})
		}}
}

func manPage(root *cobra.Command, w io.Writer) error {
	at := time.Unix(0, 0).UTC()
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd.Hidden {
			continue
		}
		if err := doc.GenMan(cmd, &doc.GenManHeader{Title: "WITAN", Section: "1", Source: "witan", Date: &at}, w); err != nil {
			return err
		}
	}
	return nil
}
