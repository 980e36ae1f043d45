package session_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"witan/ui/model"
	"witan/ui/session"
	"witan/ui/uitest"
)

// start begins a session in a bubble of time and counts its changes.
func start(t *testing.T, f *uitest.Fake) (*session.Session, *atomic.Int64) {
	var n atomic.Int64
	s := session.New(f, "/home/ada", func() { n.Add(1) })
	t.Cleanup(s.Close)
	wait()
	return s, &n
}

// wait lets everything happen that does not wait for more than a burst.
func wait() {
	for range 10 {
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
	}
}

func TestOpenShowsTheConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t, uitest.NewFake())
		if len(s.State().Conversations) != 5 || s.State().Home != "/home/ada" {
			t.Fatalf("the lists are %+v", s.State())
		}
		s.Open(uitest.Council)
		wait()
		th := s.State().Open
		if th == nil || th.Len() != 13 || s.State().Trouble != "" {
			t.Fatalf("open is %+v, trouble %q", th, s.State().Trouble)
		}
		s.Open(uitest.Gated)
		wait()
		if got := s.State().Open.Conversation.ID; got != uitest.Gated {
			t.Errorf("open is %s", got)
		}
		s.Open("")
		wait()
		if s.State().Open != nil {
			t.Error("something is open")
		}
	})
}

// TestRestChangesNothing waits an hour: lists are read, and nothing is told.
func TestRestChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := start(t, uitest.NewFake())
		s.Open(uitest.Ended)
		wait()
		before := n.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := n.Load(); got != before {
			t.Errorf("%d changes in an hour of rest", got-before)
		}
	})
}

// TestBurstIsOneChange sends many lines at once.
func TestBurstIsOneChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := uitest.NewFake()
		s, n := start(t, f)
		s.Open(uitest.Council)
		wait()
		before, rev := n.Load(), s.State().Open.Revision
		for i := range 50 {
			f.Send(uitest.Council, fmt.Sprintf(`{"type":"text","run":"run_council","attempt":"work-codex","delta":"x","epoch":"5e1f0c2a77","revision":%d}`, rev+1+uint64(i)))
		}
		wait()
		if got := n.Load() - before; got > 3 {
			t.Errorf("50 lines were %d changes", got)
		}
		if got := s.State().Open.Revision; got != rev+50 {
			t.Errorf("the revision is %d", got)
		}
	})
}

// TestGapAttachesAgain loses a line, and meets another host.
func TestGapAttachesAgain(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"a gap": `{"type":"notice","run":"run_council","epoch":"5e1f0c2a77","revision":9999}`,
		"another epoch": `{"type":"notice","run":"run_council","epoch":"x","revision":3}`, "no line at all": `}{`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := uitest.NewFake()
				s, _ := start(t, f)
				s.Open(uitest.Council)
				wait()
				f.Send(uitest.Council, line)
				wait()
				wait()
				if f.Attached() != 2 || s.State().Open.Len() != 13 {
					t.Errorf("attached %d times, %d rows", f.Attached(), s.State().Open.Len())
				}
			})
		})
	}
}

// TestHostGoesAndComes tells the trouble, keeps what is shown, and recovers.
func TestHostGoesAndComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := uitest.NewFake()
		s, _ := start(t, f)
		s.Open(uitest.Council)
		wait()
		f.SetFail(func(string) error { return errors.New("the host is gone") })
		time.Sleep(6 * time.Second)
		wait()
		if s.State().Trouble != "the host is gone" || s.State().Open.Len() != 13 {
			t.Errorf("trouble is %q, %d rows", s.State().Trouble, s.State().Open.Len())
		}
		f.SetFail(nil)
		time.Sleep(12 * time.Second)
		wait()
		if s.State().Trouble != "" {
			t.Errorf("the trouble is still %q", s.State().Trouble)
		}
	})
}

func TestDoAndNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := uitest.NewFake()
		f.Results = model.Done{Conversation: "conv_made", Run: "run_made"}
		s, _ := start(t, f)
		s.Do(model.Submit{Text: "x"})
		wait()
		if n := s.Notes(); len(n) != 1 || n[0].Opened != "conv_made" {
			t.Errorf("notes are %+v", n)
		}
		for hash, text := range uitest.Packs() {
			s.Fetch(hash)
			wait()
			if n := s.Notes(); len(n) != 1 || n[0].Pack != hash || n[0].Text != text {
				t.Errorf("notes are %+v", n)
			}
		}
		f.SetFail(func(op string) error {
			if op == "lists" {
				return nil
			}
			return errors.New("refused")
		})
		s.Do(model.StopRun{Run: "r"})
		s.Fetch("sha256:00")
		wait()
		n := s.Notes()
		if len(n) != 2 || n[0].Error+n[1].Error != "refused" || len(f.Asked()) != 2 {
			t.Errorf("notes are %+v, asked %v", n, f.Asked())
		}
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	f := uitest.NewFake()
	st, err := session.Load(t.Context(), f, "/home/ada", "")
	if err != nil || len(st.Agents) != 5 || st.Open != nil {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err = session.Load(t.Context(), f, "/home/ada", uitest.Gated); err != nil || st.Open == nil || st.Open.Conversation.ID != uitest.Gated {
		t.Errorf("%+v, %v", st, err)
	}
	f.SetFail(func(string) error { return errors.New("gone") })
	if _, err = session.Load(t.Context(), f, "", uitest.Gated); err == nil {
		t.Error("a host that is gone is no error")
	}
}
