package testscripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// councilScript lets every member agree on one plan, and the finalizer b write.
const councilScript = `{"rules": [
 {"phase": "proposal", "steps": [{"text": "I would."}, {"receipt": {"version":1,"phase":"proposal","summary":"s","capabilities":["c"],"intended_work":["w"],"deliverables":["d"],"depends_on":[]}}]},
 {"phase": "challenge", "steps": [{"text": "Fine."}, {"receipt": {"version":1,"phase":"challenge","summary":"s","verdict":"support","findings":[],"plan":{"finalizer":"b","items":[
   {"id":"W1","owner":"a","role":"worker","objective":"o","expected_output":"e","inputs":[],"depends_on":[]},
   {"id":"S","owner":"b","role":"integrator","objective":"o","expected_output":"e","inputs":[],"depends_on":["W1"]}]}}}]},
 {"phase": "work", "steps": [{"text": "Done."}, {"receipt": {"version":1,"phase":"work","summary":"s","item":"$item","artifacts":[],"claims":[]}}]},
 {"phase": "synthesis", "steps": [{"write": {"path": "out.txt", "by": "self"}}, {"text": "Together."}, {"receipt": {"version":1,"phase":"synthesis","summary":"s","resolved":"$issues","artifacts":[],"claims":[]}}]},
 {"phase": "verification", "steps": [{"text": "Good."}, {"receipt": {"version":1,"phase":"verification","summary":"s","candidate":"$candidate","verdict":"support","findings":[],"claims":[]}}]}
]}`

func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(p.dir, "ws")}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// answerAll lets every writer that died try again.
func (p *place) answerAll() {
	p.t.Helper()
	b, _, _ := p.witan(nil, "gates", "--json")
	for _, g := range lines(p.t, b) {
		p.witan(nil, "answer", g["gate"].(string), "same-writer")
	}
}

// TestCouncilKilledBeforeEveryRecord kills the host before the first of every
// kind of record in every phase of a council that writes. It ends with the
// content of an undisturbed one, in one commit, and no attempt is made twice.
func TestCouncilKilledBeforeEveryRecord(t *testing.T) {
	dir := t.TempDir()
	p := newPlace(t, filepath.Join(dir, "p"))
	p.write("a.json", councilScript)
	p.write("b.json", councilScript)
	p.git("init", "-q", "-b", "main")
	p.git("-c", "user.name=n", "-c", "user.email=e", "add", "-A")
	p.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "one")
	crash := []string{"WITAN_TEST_CRASH_ONCE=" + filepath.Join(dir, "seen")}
	args := []string{"run", "-C", "ws", "--agents", "a,b", "--plan", "council", "--permission", "full", "--commit", "git", "--key", "k", "--json", "the task"}
	kills, run := 0, ""
	for rounds := 0; ; rounds++ {
		if rounds > 200 {
			t.Fatalf("no end after %d rounds and %d kills", rounds, kills)
		}
		out, code, killed := p.witan(crash, args...)
		if killed {
			kills++
			continue
		}
		rs := lines(t, out)
		if run, _ = rs[0]["run"].(string); code == 0 && rs[len(rs)-1]["status"] == "completed" {
			break
		}
		p.answerAll()
		if _, _, killed := p.witan(crash, "resume", run, "--json"); killed {
			kills++
		}
	}
	branch := "witan/" + run
	if got := p.git("show", branch+":out.txt"); got != "written" {
		t.Errorf("out.txt on the branch is %q", got)
	}
	if got := p.git("log", "--format=%s %(trailers:key=Witan-Run,valueonly)", branch); !strings.Contains(got, "the task "+run) || strings.Count(got, "Witan") != 0 && strings.Count(got, run) != 1 {
		t.Errorf("log:\n%s", got)
	}
	if got := p.git("rev-list", "--count", "main.."+branch); got != "1" {
		t.Errorf("%s commits on the branch", got)
	}
	if got := p.git("status", "--porcelain"); got != "" {
		t.Errorf("the folder of the person changed: %s", got)
	}
	if got := p.git("worktree", "list"); strings.Contains(got, "places") {
		t.Errorf("a place is left: %s", got)
	}
	b, _, _ := p.witan(nil, "ledger", run, "--json")
	commits, invokes := 0, map[string]int{}
	for _, m := range lines(t, b) {
		if m["kind"] == "commit" {
			commits++
		}
		if m["kind"] == "stage.started" && m["stage"] == "invoke" {
			invokes[m["attempt"].(string)]++
		}
	}
	for at, n := range invokes {
		if n != 1 {
			t.Errorf("attempt %s was invoked %d times", at, n)
		}
	}
	if commits != 1 || kills < 50 {
		t.Errorf("%d commits, %d kills", commits, kills)
	}
	for _, cmd := range []string{"check", "ledger verify"} {
		if b, code, _ := p.witan(nil, append(strings.Fields(cmd), "--json")...); code != 0 {
			t.Errorf("%s: %s", cmd, b)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(p.dir, "h", "places")); len(left) > 0 {
		t.Logf("%d entries in places", len(left))
	}
	t.Logf("%d kills", kills)
}
