package gemini

import (
	"encoding/json"
	"strings"
)

// tools are the programs' own, each with its kind and the word that says what it
// does. Any other tool is "other", and its name is the word.
var tools = map[string]struct{ kind, word string }{
	"read_file": {"read", "Read"}, "read_many_files": {"read", "Read"}, "list_directory": {"read", "List"}, "zoom_image": {"read", "Look at"}, "read_mcp_resource": {"read", "Read"},
	"glob": {"search", "Find"}, "grep_search": {"search", "Search"}, "search_file_content": {"search", "Search"}, "tool_search": {"search", "Search tools"},
	"web_fetch": {"fetch", "Fetch"}, "google_web_search": {"fetch", "Search the web"}, "web_search": {"fetch", "Search the web"},
	"write_file": {"edit", "Write"}, "replace": {"edit", "Edit"}, "edit": {"edit", "Edit"}, "notebook_edit": {"edit", "Edit"},
	"run_shell_command": {"execute", "Run"}, "monitor": {"execute", "Watch"},
	"update_topic": {"think", "Topic"}, "todo_write": {"think", "Plan"}, "write_todos": {"think", "Plan"}, "agent": {"think", "Delegate"}, "task": {"think", "Delegate"},
	"get_goal": {"think", "Goal"}, "update_goal": {"think", "Goal"},
}

func kindOf(tool string) string {
	if t, ok := tools[tool]; ok {
		return t.kind
	}
	return "other"
}

// harmless reports whether a tool has no effect of its own.
func harmless(tool string) bool {
	switch kindOf(tool) {
	case "read", "search", "fetch", "think":
		return true
	}
	return false
}

// title says what a tool does, in one line.
func title(tool string, raw json.RawMessage) string {
	word := tool
	if t, ok := tools[tool]; ok {
		word = t.word
	}
	var in map[string]any
	_ = json.Unmarshal(raw, &in) // what has another shape says nothing
	for _, key := range []string{"command", "file_path", "absolute_path", "pattern", "query", "url", "description", "dir_path", "path"} {
		if s, ok := in[key].(string); ok && strings.TrimSpace(s) != "" {
			return word + " " + s
		}
	}
	return word
}

func outcome(failed bool) string {
	if failed {
		return "failed"
	}
	return "completed"
}
