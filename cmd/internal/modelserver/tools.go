package modelserver

import (
	"fmt"
	"slices"
	"strings"
)

// tool is one that the agent declared, with the JSON schema of its arguments.
type tool struct {
	name   string
	schema map[string]any
}

// call is a tool call as it goes out.
type call struct {
	id, name, args string
}

// intents lists, for each purpose, the names that agents give such a tool,
// lower case and without underscores.
var intents = map[string][]string{
	"shell": {"bash", "shell", "execcommand", "runshellcommand", "shellcommand", "executecommand", "terminal", "exec"},
	"read":  {"read", "readfile", "viewfile", "view"},
	"write": {"write", "writefile", "createfile", "create"},
}

// fields lists, for each value of a Use, the names of the argument that takes it.
var fields = map[string][]string{
	"command": {"command", "cmd", "script"},
	"path":    {"filepath", "path", "absolutepath", "targetfile", "file"},
	"content": {"content", "contents", "filetext", "text"},
}

// resolve makes a call of one of the declared tools. A write without a tool for
// it goes through the shell, as a model would do it.
func resolve(u Use, tools []tool, id string) (call, error) {
	if u.Name != "" {
		args := u.Args
		if args == nil {
			args = map[string]any{}
		}
		return call{id, u.Name, string(mustJSON(args))}, nil
	}
	if t, ok := declared(tools, u.Intent); ok {
		return call{id, t.name, string(mustJSON(arguments(u, t.schema)))}, nil
	}
	if t, ok := declared(tools, "shell"); ok && u.Intent == "write" {
		u.Command = fmt.Sprintf("printf %%s %s > %s", quote(u.Content), quote(u.Path))
		return call{id, t.name, string(mustJSON(arguments(u, t.schema)))}, nil
	}
	return call{}, fmt.Errorf("the agent declared no tool to %s", u.Intent)
}

func declared(tools []tool, intent string) (tool, bool) {
	for _, name := range intents[intent] {
		if i := slices.IndexFunc(tools, func(t tool) bool { return plain(t.name) == name }); i >= 0 {
			return tools[i], true
		}
	}
	return tool{}, false
}

// arguments fills what the schema asks for: the values of u where a name tells,
// the smallest value elsewhere where one is required.
func arguments(u Use, schema map[string]any) map[string]any {
	props, _ := schema["properties"].(map[string]any)
	args := map[string]any{}
	for name, p := range props {
		sub, _ := p.(map[string]any)
		switch {
		case slices.Contains(fields["command"], plain(name)) && u.Command != "":
			args[name] = u.Command
			if sub["type"] == "array" {
				args[name] = []string{"sh", "-c", u.Command}
			}
		case slices.Contains(fields["path"], plain(name)) && u.Path != "":
			args[name] = u.Path
		case slices.Contains(fields["content"], plain(name)) && u.Intent == "write":
			args[name] = u.Content
		case requires(schema, name):
			args[name] = smallest(sub, schema, 0)
		}
	}
	return args
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func requires(schema map[string]any, name string) bool {
	list, _ := schema["required"].([]any)
	return slices.Contains(list, any(name))
}

// maxDepth ends schemas that contain themselves.
const maxDepth = 16

// smallest returns the smallest value that a JSON schema takes; root resolves
// its local references.
func smallest(schema, root map[string]any, depth int) any {
	if depth > maxDepth {
		return nil
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, _ := schema["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	if sub := alternative(schema, root); sub != nil {
		return smallest(sub, root, depth+1)
	}
	kind, _ := schema["type"].(string)
	if list, _ := schema["type"].([]any); len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		return strings.Repeat("x", int(number(schema, "minLength")))
	case "integer", "number":
		return number(schema, "minimum")
	case "boolean":
		return false
	case "null":
		return nil
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := make([]any, int(number(schema, "minItems")))
		for i := range list {
			list[i] = smallest(items, root, depth+1)
		}
		return list
	}
	return smallestObject(schema, root, depth)
}

func smallestObject(schema, root map[string]any, depth int) map[string]any {
	out := map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	for name, p := range props {
		if sub, ok := p.(map[string]any); ok && requires(schema, name) {
			out[name] = smallest(sub, root, depth+1)
		}
	}
	return out
}

// alternative follows a local $ref, or takes the first of anyOf and oneOf; nil
// when the schema speaks for itself.
func alternative(schema, root map[string]any) map[string]any {
	if ref, _ := schema["$ref"].(string); strings.HasPrefix(ref, "#/") {
		at := root
		for _, key := range strings.Split(ref[2:], "/") {
			at, _ = at[key].(map[string]any)
		}
		return at
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, _ := schema[key].([]any); len(list) > 0 {
			sub, _ := list[0].(map[string]any)
			return sub
		}
	}
	return nil
}

func number(schema map[string]any, key string) float64 {
	n, _ := schema[key].(float64)
	return n
}
