package testscripts

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// serve starts a host and returns when it accepts commands.
func (p *place) serve(extra ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(filepath.Join(p.bin, "witan"), "serve", "--json")
	cmd.Env, cmd.Dir = append(slices.Clone(p.env), extra...), p.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		p.t.Fatal(err)
	}
	return cmd
}

// count is how many rows of a command match.
func (p *place) count(args, want []string) (n int) {
	p.t.Helper()
	out, _, _ := p.witan(nil, append(args, "--json")...)
	for _, m := range lines(p.t, out) {
		if match(m, want) {
			n++
		}
	}
	return n
}

// TestQueueKilled kills the host at each step of sending a waiting message. The
// next one sends nothing by itself, and in the end the message was sent once.
func TestQueueKilled(t *testing.T) {
	for _, point := range []string{"queue.take.before", "queue.take.after", "ledger.append.before", "ledger.append.after",
		"queue.delivered.before", "queue.delivered.after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, t.TempDir())
			p.env = append(p.env, "WITAN_TEST_SEED=") // entries and runs of several hosts in a row
			out, code, _ := p.witan(nil, "run", "-C", "ws", "--agents", "a", "--plan", "direct", "--json", "first")
			if code != 0 {
				t.Fatalf("%d: %s", code, out)
			}
			conv := lines(t, out)[0]["conversation"].(string)
			if out, code, _ := p.witan(nil, "queue", "add", conv, "queued"); code != 0 {
				t.Fatalf("%d: %s", code, out)
			}
			host := p.serve("WITAN_TEST_CRASH=" + point + ":1")
			p.witan(nil, "queue", "release", conv) // its host may be gone before it answers
			if err := host.Wait(); err == nil {
				t.Fatal("the host was not killed")
			}
			known := p.count([]string{"runs"}, nil)
			waits := p.count([]string{"queue", conv}, []string{"text=queued", "paused=true", "sending=false"})
			if known+waits != 2 {
				t.Fatalf("%d runs, and %d messages wait", known, waits)
			}
			host = p.serve()
			if n := p.count([]string{"runs"}, nil); n != known {
				t.Fatalf("%d runs after the host was started again, %d before", n, known)
			}
			p.witan(nil, "queue", "release", conv)
			for end := time.Now().Add(time.Minute); p.count([]string{"runs"}, []string{"status=completed"}) < 2; {
				if time.Now().After(end) {
					t.Fatal("the message was not sent")
				}
			}
			if n := p.count([]string{"queue", conv}, nil); n != 0 {
				t.Errorf("%d messages wait", n)
			}
			if n := p.count([]string{"show", conv}, []string{"role=user", "text=queued"}); n != 1 {
				t.Errorf("the message was sent %d times", n)
			}
			if err := host.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := host.Wait(); err != nil {
				t.Error(err)
			}
			if out, code, _ := p.witan(nil, "check", "--json"); code != 0 {
				t.Errorf("check: %s", out)
			}
		})
	}
}
