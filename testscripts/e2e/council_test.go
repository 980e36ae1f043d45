//go:build e2e

package e2e

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// answer is what the model says in a phase: a text, and the receipt.
func answer(text string, receipt object) string {
	b, err := json.Marshal(receipt)
	if err != nil {
		panic(err) // literals only
	}
	return text + "\n\n<witan-receipt>\n" + string(b) + "\n</witan-receipt>\n"
}

// councilScenario plays all phases for both members; the finalizer writes with a shell.
func councilScenario(string) any {
	item := func(id, owner, role string, after ...string) object {
		return object{"id": id, "owner": owner, "role": role, "objective": "o", "expected_output": "e", "inputs": []string{}, "depends_on": append([]string{}, after...)}
	}
	none := []string{}
	receipt := func(phase string, more object) object {
		r := object{"version": 1, "phase": phase, "summary": "done"}
		for k, v := range more {
			r[k] = v
		}
		return r
	}
	script := func(phase string, steps ...object) object {
		return object{"when": `"phase":"` + phase + `"`, "steps": steps}
	}
	return object{"scripts": []object{
		script("proposal", object{"say": answer("I propose a note.", receipt("proposal", object{"capabilities": []string{"writing"}, "intended_work": []string{"a note"}, "deliverables": []string{"RESULT.md"}, "depends_on": none}))}),
		script("challenge", object{"say": answer("Agreed.", receipt("challenge", object{"verdict": "support", "findings": none, "plan": object{"finalizer": "opencode",
			"items": []object{item("W1", "reviewer", "worker"), item("S", "opencode", "integrator", "W1")}}}))}),
		script("work", object{"say": answer("The note should say that all is well.", receipt("work", object{"item": "$item", "artifacts": none, "claims": none}))}),
		script("synthesis", object{"say": "Writing.", "use": []object{{"intent": "shell", "command": "echo all is well > RESULT.md"}}},
			object{"say": answer("The note is written.", receipt("synthesis", object{"resolved": none, "artifacts": []string{"RESULT.md"}, "claims": none}))}),
		script("verification", object{"say": answer("It says what it should.", receipt("verification", object{"candidate": "$candidate", "verdict": "support", "findings": none, "claims": none}))}),
	}}
}

// TestCouncil is a whole council of a real agent: it agrees, works, writes in a
// worktree, is checked by a command, and is committed on a branch.
func TestCouncil(t *testing.T) {
	w := newWorld(t, councilScenario)
	before := tree(t, w.workspace)
	rows := w.run("run", "-C", w.workspace, "--agents", "opencode,reviewer", "--plan", "council", "--permission", "full", "--commit", "git",
		"--verify", "grep -q well RESULT.md", "--verify", "go vet ./...", "--on-gate", "deny", "--json", "Leave a note.")
	kinds := byType(t, rows)
	var phases []string
	for _, p := range kinds["phase.started"] {
		phases = append(phases, p.str("phase"))
	}
	if !slices.Equal(phases, []string{"proposal", "challenge", "work", "synthesis", "verification"}) {
		t.Errorf("phases %v", phases)
	}
	if len(kinds["plan.agreed"]) != 1 || len(kinds["commit"]) != 1 || kinds["run.finished"][0].str("status") != "completed" {
		t.Errorf("%d plans, %d commits, %v", len(kinds["plan.agreed"]), len(kinds["commit"]), kinds["run.finished"])
	}
	for _, v := range kinds["verify"] {
		if v.str("source") == "command" && v.str("verdict") != "verified" {
			t.Errorf("verify %v", v)
		}
	}
	run := kinds["run.created"][0].str("run")
	git := exec.Command("git", "show", "-s", "--format=%(trailers:key=Witan-Run,valueonly)", "witan/"+run)
	git.Dir = w.workspace
	if out, err := git.Output(); err != nil || strings.TrimSpace(string(out)) != run {
		t.Errorf("the branch has trailer %q, %v", out, err)
	}
	git = exec.Command("git", "show", "witan/"+run+":RESULT.md")
	git.Dir = w.workspace
	if out, err := git.Output(); err != nil || string(out) != "all is well\n" {
		t.Errorf("RESULT.md is %q, %v", out, err)
	}
	if got := changed(before, tree(t, w.workspace)); len(slices.DeleteFunc(got, func(n string) bool { return strings.HasPrefix(n, ".git/") })) > 0 {
		t.Errorf("the person's folder changed: %v", got)
	}
}
