package receipts

// field describes one key.
type field struct {
	kind     string // string, int, enum, list, claims, findings, items, decision, plan
	required bool
	min      int      // least elements of a list
	of       []string // values of an enum
}

// common keys of every phase.
var common = map[string]field{
	"version": {kind: "int", required: true}, "phase": {kind: "string", required: true}, "summary": {kind: "string", required: true},
	"round": {kind: "int"}, "snapshot": {kind: "string"},
}

var (
	verdicts   = []string{"support", "contradict"}
	severities = []string{"high", "medium", "low", "info"}
)

// phases lists the further keys of each phase (docs/cli.md, receipts).
var phases = map[string]map[string]field{
	"respond": {"claims": {kind: "claims"}},
	"discuss": {"decision": {kind: "decision"}},
	"proposal": {"capabilities": {kind: "list", required: true, min: 1}, "intended_work": {kind: "list", required: true, min: 1},
		"deliverables": {kind: "list", required: true, min: 1}, "depends_on": {kind: "list", required: true}},
	"challenge": {"verdict": {kind: "enum", required: true, of: verdicts}, "findings": {kind: "findings", required: true},
		"plan": {kind: "plan"}, "support_plan": {kind: "string"}},
	"work": {"item": {kind: "string", required: true}, "artifacts": {kind: "list", required: true}, "claims": {kind: "claims", required: true},
		"findings": {kind: "findings"}},
	"synthesis": {"resolved": {kind: "list", required: true}, "artifacts": {kind: "list", required: true}, "claims": {kind: "claims", required: true}},
	"verification": {"candidate": {kind: "string", required: true}, "verdict": {kind: "enum", required: true, of: verdicts},
		"findings": {kind: "findings", required: true}, "claims": {kind: "claims", required: true}},
}

var (
	claimKeys = map[string]field{"text": {kind: "string", required: true}, "command": {kind: "string"}, "exit": {kind: "int"},
		"path": {kind: "string"}, "hash": {kind: "string"}}
	findingKeys = map[string]field{"severity": {kind: "enum", required: true, of: severities},
		"stance": {kind: "enum", of: verdicts}, "title": {kind: "string", required: true}, "detail": {kind: "string", required: true},
		"path": {kind: "string"}, "line": {kind: "int"}, "claim": {kind: "string"}}
	decisionKeys = map[string]field{"status": {kind: "enum", required: true, of: []string{"completed", "continue", "blocked", "needs-human"}},
		"reason": {kind: "string"}, "deliverables": {kind: "list"}, "handoff": {kind: "string"}, "next": {kind: "list"}}
	planKeys = map[string]field{"items": {kind: "items", required: true}, "finalizer": {kind: "string", required: true}}
	itemKeys = map[string]field{"id": {kind: "string", required: true}, "owner": {kind: "string", required: true},
		"role": {kind: "enum", required: true, of: []string{"worker", "integrator", "verifier"}}, "objective": {kind: "string", required: true},
		"expected_output": {kind: "string", required: true}, "inputs": {kind: "list"}, "depends_on": {kind: "list"}}
)
