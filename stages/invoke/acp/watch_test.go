package acp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

// timed runs one turn of p with the default watchdog on a clock of its own, and
// returns how long it took.
func timed(t *testing.T, p peer, check func(w *invoketest.World, took time.Duration, r kernel.Reply, err error), change ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		w := invoketest.NewWorld(t)
		a := newAgent(t, w, p, invoketest.Options{}, change...)
		t0 := time.Now()
		r, err := a.Invoke(t.Context(), w.Env(), w.Request("x"))
		check(w, time.Since(t0), r, err)
	})
}

// forEver repeats f each second until the turn is cancelled.
func forEver(f func(p *peer, session string)) func(ctx context.Context, p *peer, session string) (any, error) {
	return func(ctx context.Context, p *peer, session string) (any, error) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f(p, session)
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-p.told:
				return map[string]any{"stopReason": "cancelled"}, nil
			}
		}
	}
}

func TestHeartbeatIsNoProgress(t *testing.T) {
	beat := func(p *peer, s string) {
		p.update(s, "usage_update", map[string]any{"used": 1, "size": 2})
		p.update(s, "available_commands_update", nil)
		_ = p.rpc.Notify("_agent/alive", map[string]any{})
	}
	timed(t, peer{prompt: forEver(beat)}, func(w *invoketest.World, took time.Duration, _ kernel.Reply, err error) {
		f := invoketest.Failed(t, err, kernel.ClassTimeout, "stalled")
		if took != 10*time.Minute || f.Status != "stalled" {
			t.Errorf("%s, %s", took, f.Status)
		}
		if n := w.Notices("silent"); n != 29 { // every 20 s, and the last is the end
			t.Errorf("%d notices", n)
		}
		if first := w.Events("notice")[0]; first.Text != "silent for 20s" {
			t.Errorf("%q", first.Text)
		}
	})
}

func TestToolMayBeSilentForLonger(t *testing.T) {
	p := peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		p.update(s, "tool_call", map[string]any{"toolCallId": "1", "kind": "execute", "status": "in_progress"})
		p.cancelled(ctx)
		return done, nil
	}}
	timed(t, p, func(_ *invoketest.World, took time.Duration, _ kernel.Reply, err error) {
		invoketest.Failed(t, err, kernel.ClassTimeout, "stalled")
		if took != 30*time.Minute {
			t.Errorf("%s", took)
		}
	})
}

func TestThinkingIsProgress(t *testing.T) {
	p := peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
		for range 60 {
			time.Sleep(9 * time.Minute)
			p.update(s, "agent_thought_chunk", map[string]any{"content": map[string]any{"type": "text", "text": "hm"}})
		}
		p.say(s, "done")
		return done, nil
	}}
	timed(t, p, func(w *invoketest.World, took time.Duration, r kernel.Reply, err error) {
		if err != nil || took != 9*time.Hour || w.Text(t, r) != "done" {
			t.Errorf("%s, %v", took, err)
		}
	})
}

func TestStartupIsBounded(t *testing.T) {
	timed(t, peer{mute: true}, func(w *invoketest.World, took time.Duration, _ kernel.Reply, err error) {
		invoketest.Failed(t, err, kernel.ClassTimeout, "startup_timeout")
		if took != 90*time.Second || w.Notices("silent") != 4 {
			t.Errorf("%s, %d notices", took, w.Notices("silent"))
		}
		if len(w.Notes(kernel.DeliverySent)) != 0 {
			t.Error("the prompt is said to be sent")
		}
	})
}

func TestCancelGraceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := invoketest.NewWorld(t)
		a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) {
			p.say(s, "begun")
			p.cancelled(ctx)
			time.Sleep(3 * time.Second) // the grace is 2 s
			return done, nil
		}}, invoketest.Options{})
		c := w.Start(t, a, w.Request("x"))
		w.Until(t, "the text", func() bool { return w.Shown() == "begun" })
		t0 := time.Now()
		c.Stop()
		_, err := c.Wait(t)
		invoketest.Failed(t, err, kernel.ClassCancelled, "stopped")
		if d := time.Since(t0); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("%s", d)
		}
		if kept(a) != nil {
			t.Error("an agent that did not obey is kept")
		}
		if _, err := w.Mem.Session(t.Context(), invoketest.Conversation, "alpha"); !kernel.IsKind(err, kernel.NotFound) {
			t.Errorf("its session is kept: %v", err)
		}
	})
}

func TestIdleAgentIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := invoketest.NewWorld(t)
		a := newAgent(t, w, peer{prompt: func(ctx context.Context, p *peer, s string) (any, error) { p.say(s, "hi"); return done, nil }}, invoketest.Options{},
			func(c *Config) { c.Idle = time.Minute })
		w.Good(t, a, w.Request("x"))
		c := kept(a)
		if c == nil {
			t.Fatal("nothing is kept")
		}
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if c.dead() {
			t.Fatal("ended too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if kept(a) != nil || !c.dead() {
			t.Error("still there")
		}
	})
}
