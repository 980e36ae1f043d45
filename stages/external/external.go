package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"witan/kernel"
	"witan/kernel/secrets"
)

const (
	defaultTimeout = 10 * time.Minute
	maxOutput      = 8 << 20 // bytes of stdout
	maxShown       = 2000    // bytes of stderr in the text of a failure; its end says most
)

type options struct {
	Command []string `json:"command"`
	Timeout string   `json:"timeout,omitempty"`
}

type stage[In, Out any] struct {
	kind string
	run  kernel.Runner
}

// New returns the stage kind+"/exec" for the types of that kind.
func New[In, Out any](kind string, run kernel.Runner) kernel.Stage[In, Out] {
	return stage[In, Out]{kind, run}
}

func (s stage[In, Out]) Spec() kernel.Spec {
	return kernel.Spec{ID: s.kind + "/exec", Version: 1, Class: kernel.Keyed, Touches: []string{"process"},
		Doc:     "Runs an executable as the stage: JSON in, JSON out",
		Options: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","minItems":1,"items":{"type":"string"}},"timeout":{"type":"string","pattern":"^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"}},"required":["command"],"additionalProperties":false}`),
		In:      kernel.Schema[In](), Out: kernel.Schema[Out]()}
}

type envelope[T any] struct {
	Version int             `json:"version"`
	Stage   string          `json:"stage,omitempty"`
	Options json.RawMessage `json:"options,omitempty"`
	In      *T              `json:"in,omitempty"`
}

type answer struct {
	Version int             `json:"version"`
	Out     json.RawMessage `json:"out"`
	Hash    kernel.Digest   `json:"hash"`
	Usage   json.RawMessage `json:"usage"`
}

func (s stage[In, Out]) Run(ctx context.Context, env kernel.Env, in In) (out Out, err error) {
	opt, timeout, err := s.options(env)
	if err != nil {
		return out, err
	}
	stdin, err := kernel.Canonical(envelope[In]{Version: 1, Stage: s.kind + "/exec", Options: json.RawMessage("{}"), In: &in})
	if err != nil {
		return out, err
	}
	r, err := s.run.Run(ctx, kernel.Command{Argv: opt.Command, Stdin: stdin, Timeout: timeout, Limit: maxOutput})
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if err != nil {
		return out, err
	}
	what := ""
	switch {
	case r.TimedOut:
		what = fmt.Sprintf("did not end within %s", timeout)
	case r.Exit != 0:
		what = fmt.Sprintf("exited with %d", r.Exit)
	case r.Cut > 0:
		what = fmt.Sprintf("said more than %d MiB", maxOutput>>20)
	default:
		if out, err = decode[Out](r.Stdout); err == nil {
			return out, nil
		}
		what = "gave an answer that does not fit: " + err.Error()
	}
	return out, s.fail(ctx, env, opt.Command[0], what, r.Stderr)
}

func (s stage[In, Out]) options(env kernel.Env) (opt options, timeout time.Duration, err error) {
	const op = "external.Run"
	raw := env.Options
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := kernel.DecodeStrict(raw, &opt); err != nil {
		return opt, 0, kernel.E(op, kernel.Invalid, err, "the options of %s/exec are not what it takes", s.kind).WithNext("see witan stage list --json")
	}
	if len(opt.Command) == 0 || opt.Command[0] == "" {
		return opt, 0, kernel.E(op, kernel.Invalid, nil, "%s/exec has no command", s.kind).WithNext(`add command = ["./program"]`)
	}
	if opt.Timeout == "" {
		return opt, defaultTimeout, nil
	}
	if timeout, err = time.ParseDuration(opt.Timeout); err != nil || timeout <= 0 {
		return opt, 0, kernel.E(op, kernel.Invalid, nil, "timeout %q is no duration", opt.Timeout).WithNext(`write it as "10m"`)
	}
	return opt, timeout, nil
}

// decode reads an answer strictly: nothing that the schema does not know, and
// everything that it requires.
func decode[Out any](stdout []byte) (out Out, err error) {
	var a answer
	if err := kernel.DecodeStrict(stdout, &a); err != nil {
		return out, errors.New("no JSON object with version, out and, if you like, hash and usage")
	}
	if a.Version != 1 {
		return out, fmt.Errorf("version %d is unknown", a.Version)
	}
	got, err := kernel.CanonicalJSON(a.Out)
	if err != nil {
		return out, errors.New(`it has no "out"`)
	}
	if !a.Hash.IsZero() && a.Hash != kernel.Sum(got) {
		return out, fmt.Errorf("its out is %s, not %s", kernel.Sum(got), a.Hash)
	}
	if err := kernel.DecodeStrict(got, &out); err != nil {
		return out, err
	}
	var v any
	var sch shape
	if err := errors.Join(json.Unmarshal(got, &v), json.Unmarshal(kernel.Schema[Out](), &sch)); err != nil {
		return out, err
	}
	if at := sch.missing(v, "/out"); at != "" {
		return out, fmt.Errorf("%s is missing", at)
	}
	return out, nil
}

// shape is what of a JSON schema decoding does not check by itself.
type shape struct {
	Properties map[string]shape `json:"properties"`
	Required   []string         `json:"required"`
	Items      *shape           `json:"items"`
	AnyOf      []shape          `json:"anyOf"` // of a value that may be null
}

// missing returns the place of the first required field that v does not have.
func (s shape) missing(v any, at string) string {
	switch v := v.(type) {
	case map[string]any:
		if len(s.AnyOf) > 0 {
			return s.AnyOf[0].missing(v, at)
		}
		for _, k := range s.Required {
			if _, ok := v[k]; !ok {
				return at + "/" + k
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if m := s.Properties[k].missing(v[k], at+"/"+k); m != "" {
				return m
			}
		}
	case []any:
		for i, e := range v {
			if s.Items == nil {
				break
			}
			if m := s.Items.missing(e, at+"/"+strconv.Itoa(i)); m != "" {
				return m
			}
		}
	default:
		if len(s.Required) > 0 {
			return at + "/" + s.Required[0]
		}
	}
	return ""
}

// fail keeps stderr whole and shows its end.
func (s stage[In, Out]) fail(ctx context.Context, env kernel.Env, program, what string, stderr []byte) error {
	f := &kernel.Failure{Class: kernel.ClassExecution, Reason: "exec_failed", Text: filepath.Base(program) + " " + what}
	text := strings.TrimSpace(secrets.Redact(strings.ToValidUTF8(string(stderr), "\uFFFD")))
	if text == "" {
		return f
	}
	d, err := env.Packs.Put(ctx, "stderr", []byte(text))
	if err != nil {
		return err
	}
	if over := len(text) - maxShown; over > 0 {
		text = "…" + strings.ToValidUTF8(text[over:], "")
	}
	f.Text += fmt.Sprintf(" (stderr %s): %s", d, text)
	return f
}
