package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"witan/bus"
	"witan/kernel"
	"witan/kernel/engine"
	"witan/kernel/plans"
	"witan/stores"
)

const (
	streamers  = 16
	perSecond  = 2000 // deltas of one agent
	streamTime = 3 * time.Second
	tick       = 10 * time.Millisecond
)

// streamer is an invoke stage that streams numbered deltas at its pace.
type streamer struct {
	st   *stores.Store
	mu   sync.Mutex
	said map[kernel.AttemptID]string
	lags []time.Duration // from a delta to its being on disk; guarded by mu
}

// mark is when a stream had so many bytes.
type mark struct {
	bytes int
	at    time.Time
}

func (*streamer) Spec() kernel.Spec {
	return kernel.Spec{ID: "invoke/x", Version: 1, Class: kernel.Once, Parallel: true}
}

func (s *streamer) Run(ctx context.Context, env kernel.Env, d kernel.Delivery) (kernel.Reply, error) {
	var said strings.Builder
	var marks []mark
	quit := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	wg.Go(func() { s.watch(ctx, env.Attempt, quit, &mu, &marks) })
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; n < int(streamTime.Seconds()*perSecond); {
		<-t.C
		for range int(tick.Seconds() * perSecond) {
			delta := fmt.Sprintf("%d of %s\n", n, env.Attempt)
			env.Emit(kernel.Event{Type: "text", Text: delta})
			said.WriteString(delta)
			n++
		}
		mu.Lock()
		marks = append(marks, mark{said.Len(), time.Now()})
		mu.Unlock()
	}
	close(quit)
	wg.Wait()
	text := said.String()
	s.mu.Lock()
	s.said[env.Attempt] = text
	s.mu.Unlock()
	h, err := env.Packs.Put(ctx, "text", []byte(text))
	return kernel.Reply{Version: 1, Text: h, Stop: "end_turn", Tools: []kernel.ToolCall{}, Outcomes: []kernel.Outcome{}}, err
}

// watch reads the stream from the store and notes how old the oldest delta is
// that is not there yet.
func (s *streamer) watch(ctx context.Context, at kernel.AttemptID, quit chan struct{}, mu *sync.Mutex, marks *[]mark) {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-quit:
			return
		case <-t.C:
		}
		now := time.Now()
		mu.Lock()
		seen := slices.Clone(*marks)
		mu.Unlock()
		stored, err := s.st.Conversations.ReadStream(ctx, at)
		if err != nil {
			return
		}
		for _, m := range seen {
			if m.bytes > len(stored) {
				s.mu.Lock()
				s.lags = append(s.lags, now.Sub(m.at))
				s.mu.Unlock()
				break
			}
		}
	}
}

// BenchmarkStream lets 16 agents of one run stream 2,000 deltas a second each
// through real, encrypted stores with a view attached. It fails when what is
// stored, or what the view was given, is not byte for byte and in order what was
// said; it prints how late the disk and the view were, and the memory.
func BenchmarkStream(b *testing.B) {
	ctx := context.Background()
	b.Setenv("WITAN_KEY_FILE", filepath.Join(b.TempDir(), "key"))
	st, err := stores.Open(ctx, stores.Options{Dir: filepath.Join(b.TempDir(), "h"), Encryption: true})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	inv := &streamer{st: st, said: map[kernel.AttemptID]string{}}
	reg := kernel.Registry{}.With(
		kernel.Erase(noop[kernel.Task, kernel.Snapshot]{"freeze/x", kernel.Snapshot{Version: 1}}),
		kernel.Erase(noop[kernel.Turn, kernel.Delivery]{"deliver/x", kernel.Delivery{Version: 1}}), kernel.Erase(kernel.Invoke(inv)),
		kernel.Erase(noop[kernel.Reply, kernel.Claim]{"receipt/x", kernel.Claim{Version: 1}}),
		kernel.Erase(noop[kernel.Claim, kernel.Verdict]{"verify/x", kernel.Verdict{Version: 1, Scope: "attempt", Status: "completed"}}),
		kernel.Erase(noop[kernel.Verdict, kernel.Result]{"commit/x", kernel.Result{Version: 1, Scope: "run"}}))
	stages := map[string]kernel.StageRef{}
	for _, k := range []string{"freeze", "deliver", "invoke", "receipt", "verify", "commit"} {
		stages[k] = kernel.StageRef{Use: k + "/x", Class: "keyed"}
	}
	var agents []kernel.AgentID
	for i := range streamers {
		agents = append(agents, kernel.AgentID(fmt.Sprintf("a%02d", i)))
	}
	n := 0
	e := engine.New(engine.Deps{Ledger: st.Ledger, Packs: st.Packs, Conversations: st.Conversations, Streams: st.Conversations,
		Control: bus.NewControl(), View: bus.NewView(), Registry: reg, Plans: plans.List{plans.Batch{}}, Clock: clock{}, Log: slog.New(slog.DiscardHandler),
		NewID: func(p string) (string, error) { n++; return kernel.DeriveID(p, fmt.Sprint(n)), nil }})
	if _, err := e.Start(ctx); err != nil {
		b.Fatal(err)
	}
	defer e.Close(ctx)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		run, _, err := e.Submit(ctx, engine.Submission{Text: "x", Body: kernel.CreatedBody{Plan: "batch", Agents: agents,
			Permission: "read-only", Concurrency: streamers, Attempts: 64, Stages: stages, Writable: []kernel.AgentID{}}})
		if err != nil {
			b.Fatal(err)
		}
		shown, viewLag := map[kernel.AttemptID]*strings.Builder{}, []time.Duration{}
		err = e.Watch(ctx, run, 1, func(l json.RawMessage) error {
			var v struct {
				Type    string           `json:"type"`
				Attempt kernel.AttemptID `json:"attempt"`
				Delta   string           `json:"delta"`
				At      time.Time        `json:"at"`
			}
			if err := json.Unmarshal(l, &v); err != nil || v.Type != "text" {
				return err
			}
			if shown[v.Attempt] == nil {
				shown[v.Attempt] = &strings.Builder{}
			}
			shown[v.Attempt].WriteString(v.Delta)
			viewLag = append(viewLag, time.Since(v.At))
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		bytes := 0
		for at, said := range inv.said {
			if got, ok := shown[at]; ok && got.String() != said {
				b.Fatalf("the view of %s has %d bytes, not the %d said", at, got.Len(), len(said))
			}
			bytes += len(said)
		}
		if len(shown) != streamers {
			b.Fatalf("%d streams were shown", len(shown))
		}
		slices.Sort(inv.lags)
		if len(inv.lags) == 0 {
			b.Fatal("nobody looked at the disk")
		}
		b.ReportMetric(float64(inv.lags[len(inv.lags)*99/100].Milliseconds()), "disk-lag-p99-ms")
		b.ReportMetric(float64(inv.lags[len(inv.lags)-1].Milliseconds()), "disk-lag-max-ms")
		slices.Sort(viewLag)
		b.ReportMetric(float64(viewLag[len(viewLag)*99/100].Microseconds())/1e3, "view-lag-p99-ms")
		b.ReportMetric(float64(streamers*perSecond)*streamTime.Seconds(), "deltas")
		b.ReportMetric(float64(bytes)/(1<<20), "MiB-said")
		b.ReportMetric(float64(int64(after.HeapInuse)-int64(before.HeapInuse))/(1<<20), "MiB-heap-grown")
		clear(inv.said)
		inv.lags = nil
	}
}
