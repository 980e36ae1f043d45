package policy

import (
	"fmt"
	"slices"
	"strings"

	"witan/kernel"
)

// Effects, from weaker to stronger.
type effect int

const (
	none     effect = iota // reads
	changes                // ordinary work
	doubtful               // a person decides
	commits                // agents never do it
)

// finding is the strongest effect seen so far, and why; the first of equals stays.
type finding struct {
	effect effect
	why    string
	target string
}

func (f *finding) raise(e effect, why, target string) {
	if e > f.effect {
		*f = finding{e, why, target}
	}
}

// operation is one request as the policy understands it.
type operation struct {
	r     Request
	kind  string
	odd   string     // why its text cannot be trusted, or ""
	what  finding    // what it does
	where finding    // what it touches
	seen  []touched  // every path, for the deny rules
	runs  [][]string // every program with its arguments, for the deny rules
	// What was found inside of other commands, counted: it has an end.
	scripts, wraps int
	// feeds: xargs makes operands of what another program writes.
	feeds bool
	// system: it reads what belongs to the system or to a package cache.
	system bool
}

type touched struct {
	path string // absolute, or starting with ~
	use  use
}

var kinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch"}

// look examines a request once, whatever its mode.
func look(r Request) *operation {
	o := &operation{r: r, kind: strings.ToLower(strings.TrimSpace(r.Op.Kind))}
	if !slices.Contains(kinds, o.kind) {
		o.kind = "other"
	}
	o.suspect()
	o.paths()
	if r.Op.Command != "" {
		o.command(r.Op.Command)
	} else if o.kind == "execute" {
		o.command(r.Op.Title) // what some agents show instead: enough to reject, never to allow
		o.what.raise(doubtful, "unknown_target", "")
	}
	if o.kind == "other" {
		o.what.raise(doubtful, "unknown_tool", "")
	}
	return o
}

// suspect looks for text that a person cannot read as it is.
func (o *operation) suspect() {
	op := o.r.Op
	if len(op.Command) > maxCommand || len(op.Title) > maxTitle || len(op.Paths)+len(op.Asked) > maxPaths {
		o.odd = "too_long"
	}
	hidden := tricky(op.Command, true) || tricky(op.Dir, false) || tricky(op.Kind, false)
	for _, p := range slices.Concat(op.Paths, op.Asked) {
		hidden = hidden || tricky(p, false)
		if len(p) > maxPath {
			o.odd = "too_long"
		}
	}
	// The title decides only where it is all there is.
	if op.Command == "" && slices.Contains([]string{"execute", "fetch", "other"}, o.kind) {
		hidden = hidden || tricky(op.Title, true)
	}
	if hidden {
		o.odd = "hidden_characters"
	}
}

// paths examines the files that the request names.
func (o *operation) paths() {
	op, how := o.r.Op, reads
	switch o.kind {
	case "edit", "other":
		how = writes
	case "delete", "move":
		how = removes
	}
	paths := op.Paths
	for _, p := range op.Asked {
		if len(op.Paths) == 0 {
			paths = append(slices.Clip(paths), o.abs(p, o.r.Workspace))
		} else if abs := o.abs(p, o.r.Workspace); !slices.Contains(op.Paths, abs) {
			// A link of this name leads elsewhere: its name may be sensitive still.
			o.name(abs, how)
		}
	}
	for i, p := range paths {
		if o.kind == "move" && i > 0 && i == len(paths)-1 {
			how = writes
		}
		o.touch(o.abs(p, o.r.Workspace), how)
	}
	if o.kind == "fetch" && strings.Contains(strings.ToLower(op.Title), "file:") {
		o.where.raise(doubtful, outside, op.Title)
	}
	if len(paths) == 0 && op.Command == "" && slices.Contains([]string{"read", "edit", "delete", "move"}, o.kind) {
		o.where.raise(doubtful, "unknown_target", "")
	}
	if how != reads {
		o.what.raise(changes, "ordinary_work", "")
	}
}

// named reports whether anything but the kind is known of the operation.
func (o *operation) named() bool {
	op := o.r.Op
	return squeeze(op.Title+op.Command) != "" || len(op.Paths)+len(op.Asked) > 0
}

// key hashes what the operation is, not how it was written.
func (o *operation) key() string {
	op := o.r.Op
	list := []string{o.kind}
	add := func(name string, values ...string) {
		list = append(append(list, "\x00"+name), values...)
	}
	paths := op.Paths
	if len(paths) == 0 {
		paths = op.Asked
	}
	for _, p := range paths {
		add("path", o.relative(o.abs(p, o.r.Workspace)))
	}
	if op.Command != "" {
		add("command", canonical(op.Command)...)
		dir := o.r.Workspace
		if op.Dir != "" {
			dir = op.Dir
		}
		add("dir", o.relative(o.abs(dir, o.r.Workspace)))
	}
	if o.kind == "other" || op.Command == "" && len(paths) == 0 {
		add("title", squeeze(op.Title))
	}
	var b []byte
	for _, s := range list {
		b = fmt.Appendf(b, "%d:%s", len(s), s)
	}
	return kernel.SumDomain("permission", b).String()
}

// relative names a path inside the workspace the same in every worktree.
func (o *operation) relative(path string) string {
	if rel, ok := within(path, o.r.Workspace); ok {
		return "workspace:" + rel
	}
	return path
}

var verbs = map[string]string{"read": "Read", "edit": "Edit", "delete": "Delete", "move": "Move", "search": "Search",
	"execute": "Run", "think": "Think", "fetch": "Fetch", "other": "Use"}

func (o *operation) summary() string {
	op := o.r.Op
	text := op.Command
	if text == "" && op.Title != "" {
		text = op.Title
	}
	if text == "" {
		paths := op.Asked
		if len(paths) == 0 {
			paths = op.Paths
		}
		text = strings.Join(paths, ", ")
	}
	return verbs[o.kind] + ": " + visible(strings.TrimSpace(text), maxCard)
}

// target is where the effect lands: the resolved paths, or what made it doubtful.
func (o *operation) target() string {
	switch op := o.r.Op; {
	case len(op.Paths) > 0:
		return visible(strings.Join(op.Paths, ", "), maxCard)
	case o.where.target != "":
		return visible(o.where.target, maxCard)
	case op.Dir != "":
		return visible(op.Dir, maxCard)
	}
	return visible(o.r.Workspace, maxCard)
}
