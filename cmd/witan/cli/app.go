// Package cli is the command line of docs/cli.md: it turns arguments into an
// operation of a host, and lines into text or NDJSON.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"witan/cmd/internal/client"
	"witan/cmd/internal/config"
	"witan/cmd/internal/host"
	"witan/cmd/internal/say"
	"witan/kernel"
	"witan/stages/invoke/proc"
)

// Version is set by the build.
var (
	Version = "0.1.0-dev"
	Commit  = "unknown"
)

// app is one invocation of the command line.
type app struct {
	in       io.Reader
	out, err io.Writer

	home    string
	cfg     string
	json    bool
	noHost  bool
	verbose bool
}

// Main runs the command line and returns its exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil { // a bug of ours is one sentence too
			fmt.Fprintf(errw, "witan: internal error: %v (please report it with what you did)\n", p)
			code = say.Bug
		}
	}()
	if code, ok := proc.Main(args); ok { // the supervisor of an agent, not a command
		return code
	}
	proc.Private()
	a := &app{in: in, out: out, err: errw}
	ctx, stop := signals()
	defer stop()
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := root.ExecuteContext(ctx)
	return a.report(err)
}

// report prints the one line of an error and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return say.Done
	}
	var x *say.Exit
	if errors.As(err, &x) && x.Text == "" {
		return x.Code
	}
	fmt.Fprintln(a.err, "witan: "+say.Sentence(err))
	return say.Code(err)
}

// usage is an error of the command line itself.
func usage(what, next string, args ...any) error {
	return kernel.E("cli", kernel.Invalid, nil, what, args...).WithNext(next)
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:           "witan",
		Short:         "Several coding agents on one task, with a person keeping the last word",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return a.bare(c.Context())
		},
	}
	c.CompletionOptions.HiddenDefaultCmd = true
	f := c.PersistentFlags()
	f.StringVar(&a.home, "home", "", "data directory (default $WITAN_HOME, else the XDG data directory)")
	f.StringVar(&a.cfg, "config", "", "configuration file (default config.toml in the data directory)")
	f.BoolVar(&a.json, "json", false, "NDJSON on stdout, one object a line")
	f.BoolVar(&a.noHost, "no-host", false, "only talk to a running host")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log to stderr")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage(strings.TrimPrefix(err.Error(), "pflag: "), "see witan help")
	})
	c.AddCommand(a.commands()...)
	c.AddCommand(laterCmds("delete", "skills", "knowledge", "mcp", "secrets", "search", "export", "import", "verify",
		"replay", "experiment", "worker", "acp", "bug-report")...)
	c.SetHelpCommand(a.helpCmd())
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Root().SetOut(a.people())
		help(c, args)
	})
	return c
}

func (a *app) unknown(root *cobra.Command, name string) error {
	var known []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	next := "see witan help"
	if n := config.Near(name, known); n != "" {
		next = fmt.Sprintf("did you mean %q? %s", n, next)
	}
	return usage("unknown command %q", next, name)
}

// bare is `witan` alone: the window where there is a display, else how to use the
// terminal.
func (a *app) bare(ctx context.Context) error {
	if display() {
		return a.window(ctx, uiFlags{})
	}
	fmt.Fprint(a.people(), `There is no display for a window, or no window in this build. In the terminal:

  witan run "Say what this project does and what is wrong with it"
      work on a task with the built-in agents, in the current folder
  witan runs · witan show CONVERSATION
      read what was done
  witan doctor
      see what is ready and what is missing
  witan help
      all commands
`)
	return nil
}

// dataDir is the data directory, absolute.
func (a *app) dataDir() (string, error) {
	dir := a.home
	if dir == "" {
		dir = os.Getenv("WITAN_HOME")
	}
	if dir == "" {
		base := os.Getenv("XDG_DATA_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", usage("there is no home folder", "set WITAN_HOME or use --home")
			}
			base = filepath.Join(home, ".local", "share")
			switch runtime.GOOS {
			case "windows":
				base = filepath.Join(home, "AppData", "Local")
			case "darwin":
				base = filepath.Join(home, "Library", "Application Support")
			}
		}
		dir = filepath.Join(base, "witan")
	}
	return filepath.Abs(dir)
}

// caller runs operations, in this process or in another.
type caller interface {
	Call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) error
}

// inProcess makes a host a caller.
type inProcess struct{ h *host.Host }

func (p inProcess) Call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) error {
	return p.h.Call(ctx, op, args, emit)
}

const (
	lockWait  = 30 * time.Second // another host may be starting or going
	lockPause = 20 * time.Millisecond
)

// connect finds the host of the data directory, or becomes it. done must be
// called; it waits for others that this host works for.
func (a *app) connect(ctx context.Context) (c caller, done func() error, err error) {
	dir, err := a.dataDir()
	if err != nil {
		return nil, nil, err
	}
	deadline := time.Now().Add(lockWait)
	for pause := lockPause; ; pause = min(2*pause, time.Second) {
		cl, err := client.Dial(ctx, dir, Version)
		if err == nil {
			return cl, func() error { return nil }, nil
		}
		if !kernel.IsKind(err, kernel.Unavailable) {
			return nil, nil, err
		}
		if a.noHost {
			return nil, nil, kernel.E("cli", kernel.Locked, nil, "no host is running for %s", dir).WithNext("start one with witan serve, or leave out --no-host")
		}
		h, err := host.Open(ctx, a.hostOptions(dir, false))
		if err == nil {
			return inProcess{h}, h.Close, nil
		}
		if !kernel.IsKind(err, kernel.Locked) || time.Now().After(deadline) {
			return nil, nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

func (a *app) hostOptions(dir string, serving bool) host.Options {
	return host.Options{Home: dir, Config: a.cfg, Version: Version, Serving: serving, Log: a.logger()}
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelError + 4 // silent: errors reach the person as one sentence
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// call runs one operation and passes its lines to emit.
func (a *app) call(ctx context.Context, op string, args any, emit func(json.RawMessage) error) (err error) {
	c, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return c.Call(ctx, op, args, emit)
}

// people is where text for people goes that a command was asked for.
func (a *app) people() io.Writer {
	if a.json {
		return a.err
	}
	return a.out
}

// raw prints a line as it is.
func (a *app) raw(l json.RawMessage) error {
	_, err := fmt.Fprintf(a.out, "%s\n", l)
	return err
}

// row prints v as a line.
func (a *app) row(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.raw(b)
}

// document prints a text that is not made of lines of ours, with --json as a
// field of one object.
func (a *app) document(write func(io.Writer) error, row func(text string) any) error {
	if !a.json {
		return write(a.out)
	}
	var b strings.Builder
	if err := write(&b); err != nil {
		return err
	}
	return a.row(row(b.String()))
}

func isTTY(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
