package fake

import (
	"encoding/json"
	"slices"
	"strings"
)

// dialect is a protocol other than ACP that the same scripts are spoken in.
type dialect interface {
	// lines is what an update of ACP is there.
	lines(u map[string]any) []byte
	// ask sends a request to the client and returns the answer as ACP has it.
	ask(t *turn, method string, params any, id string) json.RawMessage
	// heard takes a line of input.
	heard(line []byte)
}

// dialects are the flags that choose one, and how it starts with its own flags.
var dialects = map[string]func(a *agent, flags []string) (dialect, int){
	"--claude": newClaude,
	"--codex":  newCodex,
}

// flag is the value behind a flag; "" when it is not there.
func flag(flags []string, name string) string {
	if i := slices.Index(flags, name); i >= 0 && i+1 < len(flags) {
		return flags[i+1]
	}
	return ""
}

// textOf is the text of an update's content.
func textOf(u map[string]any) string {
	c, _ := u["content"].(map[string]any)
	s, _ := c["text"].(string)
	return s
}

func str(u map[string]any, key string) string {
	s, _ := u[key].(string)
	return s
}

// encode makes lines of values.
func encode(values ...any) []byte {
	var out []byte
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out
}

type object = map[string]any

// tools are the names under which a dialect's agent would have a tool of a kind.
var tools = map[string]string{"read": "Read", "search": "Grep", "edit": "Write", "execute": "Bash", "fetch": "WebFetch"}

// toolOf is the call of a tool that the update speaks of: its name and what it
// was given, so that both together say the title.
func toolOf(u map[string]any) (name string, input object) {
	title := str(u, "title")
	name = tools[str(u, "kind")]
	if name == "" {
		return title, object{}
	}
	return name, object{"description": strings.TrimPrefix(title, name)}
}
