//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

var members = []string{"opencode", "scout", "inspector", "runner"}

func TestBatch(t *testing.T) {
	const answer = "It adds two numbers, and there is a test for it."
	w := newWorld(t, func(string) any {
		return object{"scripts": []object{{"when": "case batch", "steps": []object{{"in": 1234, "out": 56, "think": "Reading.",
			"say": answer + "\n\n<witan-receipt>\n{\"version\":1,\"phase\":\"respond\",\"summary\":\"described it\"}\n</witan-receipt>\n"}}}}}
	})
	before := tree(t, w.workspace)
	rows := w.run("run", "-C", w.workspace, "--agents", strings.Join(members, ","), "--plan", "batch", "--json", "What does this project do? (case batch)")
	kinds := byType(t, rows)

	created := kinds["run.created"][0]
	if got := fmt.Sprint(created["agents"]); got != fmt.Sprint(members) {
		t.Errorf("members %s", got)
	}
	if n := len(kinds["snapshot.frozen"]); n != 1 {
		t.Errorf("%d snapshots", n)
	}
	replies := w.checkReplies(kinds["message"], answer)
	w.checkAttempts(kinds, 1234, 56)
	if end := kinds["run.finished"]; len(end) != 1 || end[0].str("status") != "completed" || len(kinds["commit"]) != 1 {
		t.Errorf("end %v, %d commits", end, len(kinds["commit"]))
	}

	prompt := w.asked()["case batch[0]"].str("user")
	if !strings.Contains(prompt, "<witan-turn>") || !strings.Contains(prompt, `"agent":"opencode"`) {
		t.Errorf("the agent was given no turn block:\n%s", prompt)
	}
	for agent, text := range replies {
		if strings.Contains(prompt, text) {
			t.Errorf("the prompt holds the reply of %s", agent)
		}
	}
	if after := tree(t, w.workspace); !maps.Equal(before, after) {
		t.Errorf("the workspace changed: %v", changed(before, after))
	}
	w.checkRecord(created.str("run"), created.str("conversation"))
}

// checkReplies checks that every member has one message, in order, and returns
// the texts.
func (w *world) checkReplies(messages []row, answer string) map[string]string {
	t := w.t
	t.Helper()
	texts, order, turn := map[string]string{}, []string{}, 0.0
	for _, m := range messages {
		if m.str("role") != "agent" {
			continue
		}
		seq, _ := m["turn_seq"].(float64)
		if seq <= turn {
			t.Errorf("turn_seq of %s is %v after %v", m.str("agent"), seq, turn)
		}
		order, turn = append(order, m.str("agent")), seq
		if texts[m.str("agent")] = strings.TrimSpace(m.str("text")); texts[m.str("agent")] == "" {
			t.Errorf("the message of %s is empty", m.str("agent"))
		}
	}
	if !slices.Equal(order, members) {
		t.Errorf("messages in order %v", order)
	}
	if got := texts["opencode"]; !strings.HasPrefix(got, answer) || strings.Contains(got, "witan-receipt") {
		t.Errorf("the real agent's message is %q", got)
	}
	return texts
}

// checkAttempts checks that every attempt completed, and the real agent's tokens.
func (w *world) checkAttempts(kinds map[string][]row, in, out float64) {
	t := w.t
	t.Helper()
	agent := map[string]string{}
	for _, r := range kinds["attempt.started"] {
		agent[r.str("attempt")] = r.str("agent")
	}
	done := map[string]row{}
	for _, r := range kinds["attempt.finished"] {
		done[agent[r.str("attempt")]] = r
	}
	for _, m := range members {
		if done[m].str("status") != "completed" {
			t.Errorf("attempt of %s: %v", m, done[m])
		}
	}
	usage, _ := done["opencode"]["usage"].(object)
	if usage["input"] != in || usage["output"] != out {
		t.Errorf("usage of the real agent: %v", usage)
	}
}

// checkRecord checks what is left of the run in the data directory.
func (w *world) checkRecord(run, conversation string) {
	t := w.t
	t.Helper()
	if runs := w.run("runs", "--json"); len(runs) != 1 || runs[0].str("run") != run || runs[0].str("status") != "completed" {
		t.Errorf("runs: %v", runs)
	}
	var order []string
	for _, m := range w.run("show", conversation, "--json") {
		if m.str("role") == "agent" {
			order = append(order, m.str("agent"))
		}
	}
	if !slices.Equal(order, members) {
		t.Errorf("the conversation shows replies of %v", order)
	}
	for _, command := range [][]string{{"ledger", "verify", "--json"}, {"check", "--json"}} {
		if rows := w.run(command...); len(rows) == 0 {
			t.Errorf("%v printed nothing", command)
		}
	}
}

// plant is a script that writes into the workspace in every way the agent has:
// its own tool, a shell, and a grandchild in a session of its own.
func plant(workspace string) any {
	shell := fmt.Sprintf("echo 1 > planted-shell.txt; echo 1 > %[1]s/planted-path.txt; echo 1 >> %[1]s/sum.go; "+
		"rm -f %[1]s/README.md; setsid sh -c 'echo 1 > %[1]s/planted-setsid.txt'; echo tried", workspace)
	return object{"scripts": []object{{"when": "case plant", "steps": []object{
		{"say": "Writing.", "use": []object{{"intent": "write", "path": filepath.Join(workspace, "planted-tool.txt"), "content": "1\n"}}},
		{"say": "Again.", "use": []object{{"intent": "shell", "command": shell}}},
		{"say": "I tried all I know."},
	}}}}
}

const plantTask = "Change this project. (case plant)"

func TestReadOnlyTurnCannotWrite(t *testing.T) {
	w := newWorld(t, plant)
	before := tree(t, w.workspace)
	rows := w.run("run", "-C", w.workspace, "--agents", "opencode,scout", "--plan", "batch", "--permission", "read-only", "--json", plantTask)
	if after := tree(t, w.workspace); !maps.Equal(before, after) {
		t.Errorf("the workspace changed: %v", changed(before, after))
	}
	for _, step := range []string{"case plant[0]", "case plant[1]", "case plant[2]"} {
		if w.asked()[step] == nil {
			t.Errorf("the agent never came to %s, so this shows nothing", step)
		}
	}
	refused := 0
	for _, r := range byType(t, rows)["tool"] {
		if r.str("agent") == "opencode" && r.str("status") == "failed" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no tool call of the agent is shown as failed")
	}
}

// TestPlantWorks is the counterpart: without Witan the same script changes the
// project, so the test above can fail.
func TestPlantWorks(t *testing.T) {
	w := newWorld(t, plant)
	before := tree(t, w.workspace)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, opencode, "run", plantTask)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.workspace, slices.Clone(w.env), 10*time.Second
	for k, v := range w.agentEnv {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("opencode: %v\n%s", err, out)
	}
	got := changed(before, tree(t, w.workspace))
	for _, name := range []string{"README.md", "planted-path.txt", "planted-setsid.txt", "planted-shell.txt", "planted-tool.txt", "sum.go"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s did not change; what did: %v", name, got)
		}
	}
}

// byType checks the sequence of a run's rows and sorts them by type.
func byType(t *testing.T, rows []row) map[string][]row {
	t.Helper()
	kinds := map[string][]row{}
	for i, r := range rows {
		if r["seq"] != float64(i+1) {
			t.Fatalf("row %d has seq %v", i+1, r["seq"])
		}
		kinds[r.str("type")] = append(kinds[r.str("type")], r)
	}
	if len(kinds["run.created"]) != 1 {
		t.Fatalf("%d rows say that the run was created", len(kinds["run.created"]))
	}
	return kinds
}

// tree returns mode and content of everything below dir, .git included.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		out[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out[rel] += fmt.Sprintf(" %x", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changed lists what differs between two trees.
func changed(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
