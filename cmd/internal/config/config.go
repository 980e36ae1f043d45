// Package config reads config.toml. It is strict: an unknown key is an error
// that names the key, its line and the nearest known key; nothing is guessed.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pelletier/go-toml/v2"

	"witan/kernel"
	"witan/kernel/policy"
)

// Config is the whole of config.toml with defaults filled in.
type Config struct {
	Encryption bool             `toml:"encryption"`
	Agents     map[string]Agent `toml:"agents"`
	Run        Run              `toml:"run"`
	Prices     map[string]Price `toml:"prices"`
	Budget     map[string]any   `toml:"budget"`
	Watchdog   Watchdog         `toml:"watchdog"`
	Limits     Limits           `toml:"limits"`
	Bus        Bus              `toml:"bus"`
	Pipeline   Pipeline         `toml:"pipeline"`
}

// Agent is one configured agent; the key of its table is its id.
type Agent struct {
	Name               string            `toml:"name"`
	Protocol           string            `toml:"protocol"`
	Command            []string          `toml:"command"`
	Env                map[string]string `toml:"env"`
	Writable           *bool             `toml:"writable"`
	State              []string          `toml:"state"`
	Usage              string            `toml:"usage"`
	InputIncludesCache *bool             `toml:"input_includes_cache"`
	Capabilities       []string          `toml:"capabilities"`
}

// Run holds the defaults of a submission.
type Run struct {
	Plan        string   `toml:"plan"`
	Agents      []string `toml:"agents"`
	Permission  string   `toml:"permission"`
	MaxRounds   int      `toml:"max_rounds"`
	Concurrency int      `toml:"concurrency"`
	Effort      string   `toml:"effort"`
	Commit      string   `toml:"commit"`
	Isolation   string   `toml:"isolation"`
	Verify      []string `toml:"verify"`
	CommitGate  string   `toml:"commit_gate"`
	Deny        []string `toml:"deny"` // beats every permission; see docs/permissions.md
}

// Price is in millionths of a US dollar per million tokens.
type Price struct {
	Input      int64 `toml:"input"`
	Cached     int64 `toml:"cached"`
	CacheWrite int64 `toml:"cache_write"`
	Output     int64 `toml:"output"`
}

// Watchdog bounds silence; see SPEC G5.
type Watchdog struct {
	Startup     Duration `toml:"startup"`
	Notice      Duration `toml:"notice"`
	NoOutput    Duration `toml:"no_output"`
	Tool        Duration `toml:"tool"`
	CancelGrace Duration `toml:"cancel_grace"`
	KillGrace   Duration `toml:"kill_grace"`
}

// Limits bounds what one run may use.
type Limits struct {
	LineBytes int `toml:"line_bytes"`
	Attempts  int `toml:"attempts"`
}

// Bus says where signals travel.
type Bus struct {
	URL string `toml:"url"`
}

// Pipeline names the pipeline file; relative to the folder of config.toml.
type Pipeline struct {
	File string `toml:"file"`
}

// Duration is a time.Duration written as text ("90s").
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 90s or 10m", b)
	}
	*d = Duration(v)
	return nil
}

// Default is the configuration without a file.
func Default() Config {
	sec := func(n float64) Duration { return Duration(n * float64(time.Second)) }
	return Config{
		Encryption: true,
		Run: Run{Plan: "batch", Permission: "read-only", MaxRounds: 6, Concurrency: 4, Commit: "record", Isolation: "auto",
			CommitGate: "never", Verify: []string{}},
		Watchdog: Watchdog{Startup: sec(90), Notice: sec(20), NoOutput: sec(600), Tool: sec(1800), CancelGrace: sec(2), KillGrace: sec(0.5)},
		Limits:   Limits{LineBytes: 16 << 20, Attempts: 512},
		Bus:      Bus{URL: "memory"},
	}
}

const maxFile = 1 << 20

// Load reads the file at path; a missing file is the default configuration
// unless must is set.
func Load(path string, must bool) (Config, error) {
	const op = "config.Load"
	c := Default()
	fi, err := os.Stat(path)
	if (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && !must {
		return c, nil
	}
	if err != nil {
		return c, kernel.E(op, kernel.Invalid, err, "configuration %s cannot be read", path).WithNext("check --config")
	}
	if fi.IsDir() || fi.Size() > maxFile {
		return c, kernel.E(op, kernel.Invalid, nil, "configuration %s is a folder or over 1 MiB", path).WithNext("check --config")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, kernel.E(op, kernel.Invalid, err, "configuration %s cannot be read", path).WithNext("check its permissions")
	}
	if err := Parse(b, path, &c); err != nil {
		return c, err
	}
	if f := c.Pipeline.File; f != "" && !filepath.IsAbs(f) {
		c.Pipeline.File = filepath.Join(filepath.Dir(path), f)
	}
	return c, nil
}

// Parse decodes b into c and checks it; name is used in errors.
func Parse(b []byte, name string, c *Config) error {
	const op = "config.Parse"
	dec := toml.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(c)
	var strict *toml.StrictMissingError
	var derr *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		e := strict.Errors[0]
		row, _ := e.Position()
		key := strings.Join(e.Key(), ".")
		return kernel.E(op, kernel.Invalid, nil, "%s line %d: unknown key %q", name, row, key).
			WithNext("did you mean %q?", nearest(e.Key()))
	case errors.As(err, &derr):
		row, _ := derr.Position()
		return kernel.E(op, kernel.Invalid, nil, "%s line %d: %s", name, row, strings.TrimPrefix(derr.Error(), "toml: ")).
			WithNext("correct the line")
	case err != nil:
		return kernel.E(op, kernel.Invalid, err, "%s", name).WithNext("correct the file")
	}
	return c.check(name, b)
}

var agentID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Values a key may have.
var (
	Protocols   = []string{"acp", "claude-stream-json", "codex-json", "gemini-stream-json", "opencode-json", "text"}
	PlanNames   = []string{"direct", "batch", "discuss", "council"}
	Permissions = []string{"read-only", "ask", "auto", "full"}
	Commits     = []string{"record", "apply", "git"}
	Isolations  = []string{"auto", "in-place"}
	usages      = []string{"", "turn", "session-total"}
	gates       = []string{"never", "unverified"}
)

func (c *Config) check(name string, src []byte) error {
	one := func(key, v string, of []string) error {
		if slices.Contains(of, v) {
			return nil
		}
		return kernel.E("config.check", kernel.Invalid, nil, "%s%s: %s %q is unknown", name, lineOf(src, key), key, v).
			WithNext("use one of %s", strings.Join(nonEmpty(of), ", "))
	}
	for _, e := range []error{one("plan", c.Run.Plan, PlanNames), one("permission", c.Run.Permission, Permissions),
		one("commit", c.Run.Commit, Commits), one("isolation", c.Run.Isolation, Isolations), one("commit_gate", c.Run.CommitGate, gates)} {
		if e != nil {
			return e
		}
	}
	for _, r := range c.Run.Deny {
		if _, err := policy.ParseRule(r); err != nil {
			return kernel.E("config.check", kernel.Invalid, err, "%s%s: deny rule %q", name, lineOf(src, "deny"), r)
		}
	}
	for id, a := range c.Agents {
		if !agentID.MatchString(id) {
			return kernel.E("config.check", kernel.Invalid, nil, "%s: agent id %q is not made of a-z, 0-9, - and _", name, id).WithNext("rename it")
		}
		if err := one("protocol", a.Protocol, Protocols); err != nil {
			return err
		}
		if err := one("usage", a.Usage, usages); err != nil {
			return err
		}
		if len(a.Command) == 0 || a.Command[0] == "" {
			return kernel.E("config.check", kernel.Invalid, nil, "%s: agent %q has no command", name, id).WithNext(`add command = ["program", "argument"]`)
		}
	}
	if _, err := c.RunBudget(); err != nil {
		return kernel.E("config.check", kernel.Invalid, err, "%s", name)
	}
	switch {
	case c.Run.Concurrency < 1 || c.Run.Concurrency > 64:
		return kernel.E("config.check", kernel.Invalid, nil, "%s%s: concurrency is %d", name, lineOf(src, "concurrency"), c.Run.Concurrency).WithNext("use 1 to 64")
	case c.Run.MaxRounds < 0 || c.Run.MaxRounds > 10:
		return kernel.E("config.check", kernel.Invalid, nil, "%s%s: max_rounds is %d", name, lineOf(src, "max_rounds"), c.Run.MaxRounds).WithNext("use 1 to 10, or 0 for no limit")
	case c.Limits.LineBytes < 1024:
		return kernel.E("config.check", kernel.Invalid, nil, "%s%s: line_bytes is %d", name, lineOf(src, "line_bytes"), c.Limits.LineBytes).WithNext("use at least 1024")
	case c.Limits.Attempts < 1:
		return kernel.E("config.check", kernel.Invalid, nil, "%s%s: attempts is %d", name, lineOf(src, "attempts"), c.Limits.Attempts).WithNext("use at least 1")
	case c.Bus.URL != "memory":
		return kernel.E("config.check", kernel.Unsupported, nil, "%s%s: bus url %q is not in this version", name, lineOf(src, "url"), c.Bus.URL).WithNext(`use "memory"`)
	}
	return nil
}

// lineOf finds the line that sets key, for an error text; "" when there is none.
func lineOf(src []byte, key string) string {
	re := regexp.MustCompile(`^\s*` + regexp.QuoteMeta(key) + `\s*=`)
	for i, l := range bytes.Split(src, []byte("\n")) {
		if re.Match(l) {
			return fmt.Sprintf(" line %d", i+1)
		}
	}
	return ""
}

func nonEmpty(in []string) []string {
	return slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" })
}
