package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"witan/kernel"
)

// file is what errors say of a pipeline file.
type file struct {
	name  string
	lines map[string]int // by path
}

// wrong is an error at the place of a key; a key that is not in the file stands
// where its table does.
func (f file) wrong(path []string, what string, args ...any) *kernel.Error {
	row := 1
	for n := len(path); n > 0; n-- {
		if l, ok := f.lines[join(path[:n])]; ok {
			row = l
			break
		}
	}
	return kernel.E("pipeline.Load", kernel.Invalid, nil, "%s line %d: %s", f.name, row, fmt.Sprintf(what, args...))
}

func join(path []string) string { return strings.Join(path, "\x00") }

// lines finds the line of every key, table and element of a file that parses;
// elements of arrays are named by their number.
func lines(b []byte) map[string]int {
	l := locator{at: map[string]int{}, count: map[string]int{}}
	l.Reset(b)
	var table []string
	for l.NextExpression() {
		e := l.Expression()
		switch e.Kind {
		case unstable.Table:
			table = l.header(e, false)
		case unstable.ArrayTable:
			table = l.header(e, true)
		case unstable.KeyValue:
			l.pair(e, table)
		}
	}
	return l.at
}

type locator struct {
	unstable.Parser
	at    map[string]int
	count map[string]int // tables of an array of tables
}

func (l *locator) set(path []string, n *unstable.Node) {
	if _, ok := l.at[join(path)]; !ok && n.Raw.Length > 0 {
		l.at[join(path)] = l.Shape(n.Raw).Start.Line
	}
}

// header is the path of a table; below an array of tables its last one is meant.
func (l *locator) header(e *unstable.Node, array bool) []string {
	var path []string
	for it := e.Key(); it.Next(); {
		path = append(path, string(it.Node().Data))
		if it.IsLast() && array {
			l.count[join(path)]++
		}
		l.set(path, it.Node())
		if n := l.count[join(path)]; n > 0 {
			path = append(path, strconv.Itoa(n-1))
			l.set(path, it.Node())
		}
	}
	return path
}

// pair is one key = value below path.
func (l *locator) pair(e *unstable.Node, path []string) {
	path = append([]string{}, path...)
	for it := e.Key(); it.Next(); {
		path = append(path, string(it.Node().Data))
		l.set(path, it.Node())
	}
	l.value(e.Value(), path)
}

func (l *locator) value(v *unstable.Node, path []string) {
	l.set(path, v)
	n := 0
	for it := v.Children(); it.Next(); {
		switch c := it.Node(); {
		case v.Kind == unstable.InlineTable:
			l.pair(c, path)
		case v.Kind == unstable.Array && c.Kind != unstable.Comment:
			l.value(c, append(append([]string{}, path...), strconv.Itoa(n)))
			n++
		}
	}
}
