package testscripts

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// lineFields is what docs/cli.md promises of every line of a type, whatever happened.
var lineFields = map[string]string{
	"run.created":      "conversation plan agents permission",
	"snapshot.frozen":  "snapshot",
	"phase.started":    "phase round slots",
	"phase.finished":   "phase round status",
	"attempt.queued":   "attempt agent phase round try",
	"attempt.started":  "attempt agent phase round try",
	"attempt.finished": "attempt agent phase round try status usage",
	"stage.finished":   "stage impl in out ms",
	"stage.failed":     "stage impl in class reason",
	"permission":       "attempt asked resolved decision by",
	"receipt.rejected": "attempt code receipt",
	"receipt":          "attempt phase receipt source",
	"text":             "attempt agent delta",
	"tool":             "attempt agent id kind title status",
	"notice":           "code text",
	"gate.opened":      "gate kind summary target options",
	"gate.decided":     "gate option by",
	"plan.agreed":      "plan_hash items finalizer verifiers",
	"finding":          "id agent severity stance title detail path line evidence",
	"evidence":         "id kind level summary path hash attempt",
	"artifact":         "id kind summary path hash attempt",
	"verify":           "claim attempt source verdict reason evidence",
	"message":          "message role turn_seq text",
	"commit":           "commit impl target content",
	"run.finished":     "status reason usage",
	"run.resumed":      "by",
	"adoption":         "id state by",
}

const usageFields = "input output cached cache_write reasoning cost_usd_micros complete"

// fields FILE TYPE…: every line of a run has the fields of its type, and there
// is a line of each TYPE.
func cmdFields(ts *testscript.TestScript, neg bool, args []string) {
	var seen []string
	for _, m := range rows(ts, args[0]) {
		kind := text(m["type"])
		want, known := lineFields[kind]
		if !known {
			ts.Fatalf("type %q is unknown", kind)
		}
		has(ts, m, "type run seq at "+want)
		if u, ok := m["usage"].(map[string]any); ok {
			has(ts, u, usageFields)
		}
		if kind == "attempt.finished" && m["status"] != "completed" {
			has(ts, m, "class reason")
		}
		seen = append(seen, kind)
	}
	for _, kind := range args[1:] {
		if !slices.Contains(seen, kind) {
			ts.Fatalf("no line is a %s", kind)
		}
	}
}

// rowFields is what docs/cli.md promises of the rows of other commands.
var rowFields = map[string]string{
	"runs":          "run conversation status plan agents created finished reason title",
	"conversations": "conversation title workspace agents plan archived messages updated",
	"show":          "message role agent turn_seq text run status at attachments",
	"gates":         "gate kind run attempt summary target options opened",
	"agents":        "agent name protocol version status reason next",
	"ledger":        "run seq kind stage attempt hash prev at",
	"ledger-verify": "run ok records first_bad",
	"pack":          "hash kind bytes stored refs",
	"queue":         "entry position text held",
	"stages":        "stage version class",
}

// row-fields NAME: stdout has rows, each with the fields of NAME.
func cmdRowFields(ts *testscript.TestScript, neg bool, args []string) {
	rs := rows(ts, "stdout")
	if len(rs) == 0 || rowFields[args[0]] == "" {
		ts.Fatalf("there are no rows, or no fields of %s", args[0])
	}
	for _, m := range rs {
		has(ts, m, rowFields[args[0]])
	}
}

func has(ts *testscript.TestScript, m map[string]any, fields string) {
	for f := range strings.FieldsSeq(fields) {
		if _, ok := m[f]; !ok {
			ts.Fatalf("%q is missing in %v", f, m)
		}
	}
}
