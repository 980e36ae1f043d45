package council

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one of the server's tools.
type tool struct {
	name, title, doc string
	schema           string
}

// tools are what every turn is offered. The schemas say what a model needs to
// know; what is refused is decided by kernel/receipts.
var tools = []tool{
	{"receipt", "Submit the receipt", "Submits the receipt that closes this turn. The arguments are the receipt object itself, with the keys that the task asks for. " +
		"Call it once, when the work is done. The same receipt again is no error; another one is refused.",
		`{"type":"object","properties":{"version":{"type":"integer","const":1},"phase":{"type":"string"},"summary":{"type":"string","maxLength":800}},` +
			`"required":["version","phase","summary"],"additionalProperties":true}`},
	{"context", "Read an item", "Returns the text of a message, attachment or other item that the task names by its id.",
		`{"type":"object","properties":{"id":{"type":"string","maxLength":800}},"required":["id"],"additionalProperties":false}`},
	{"ask", "Ask the person", "Asks the person a question and waits for the answer, which may take long. Ask only what the task cannot go on without.",
		`{"type":"object","properties":{"question":{"type":"string","maxLength":800},` +
			`"options":{"type":"array","maxItems":16,"items":{"type":"string","maxLength":800},"description":"answers to choose from, if there are some"}},` +
			`"required":["question"],"additionalProperties":false}`},
	{"finding", "Report a finding", "Reports a finding at once: what is wrong or notable, where, and how you know.",
		`{"type":"object","properties":{"severity":{"type":"string","enum":["high","medium","low","info"]},"stance":{"type":"string","enum":["support","contradict"]},` +
			`"title":{"type":"string","maxLength":800},"detail":{"type":"string","maxLength":800},` +
			`"path":{"type":"string","maxLength":800,"description":"relative to the workspace"},"line":{"type":"integer","minimum":1},` +
			`"evidence":{"type":"array","maxItems":16,"items":{"type":"string"},"description":"ids of evidence that is on record"}},` +
			`"required":["severity","title","detail"],"additionalProperties":false}`},
}

func (t tool) tool() *mcp.Tool {
	no, yes := false, true
	return &mcp.Tool{Name: t.name, Title: t.title, Description: t.doc, InputSchema: json.RawMessage(t.schema),
		Annotations: &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: t.name == "context", DestructiveHint: &no, IdempotentHint: yes, OpenWorldHint: &no}}
}
