package host

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"witan/bus"
	"witan/kernel"
	"witan/stages/invoke/proc"
)

// testHooks are what tests of the real binary can ask for through the
// environment. Without these variables all of it is off.
//
//	WITAN_TEST_SEED=N        ids follow from N: two hosts in the same folder make the same ones
//	WITAN_TEST_BUS=chaos:N   a share of the bus signals is dropped, doubled and shuffled
//	WITAN_TEST_BUS=stopped   no signal is delivered
//	WITAN_TEST_CRASH=POINT:N the process kills itself at the N-th time it comes to a crash point
//	WITAN_TEST_CRASH_ONCE=F  it kills itself before each record that is not yet listed in file F
type testHooks struct {
	crash        func(string)
	beforeAppend func([]kernel.Record)
	bus          func(kernel.Bus) kernel.Bus
	newID        func(prefix string) (string, error)
}

func readTestHooks() (testHooks, error) {
	t := testHooks{bus: func(b kernel.Bus) kernel.Bus { return b }, newID: func(prefix string) (string, error) {
		return kernel.NewID(prefix, time.Now(), rand.Reader)
	}}
	if s := os.Getenv("WITAN_TEST_SEED"); s != "" {
		t.newID = seeded(s)
	}
	switch s := os.Getenv("WITAN_TEST_BUS"); {
	case s == "stopped":
		t.bus = bus.Stopped
	case strings.HasPrefix(s, "chaos:"):
		seed, err := strconv.ParseUint(strings.TrimPrefix(s, "chaos:"), 10, 64)
		if err != nil {
			return t, kernel.E("host.readTestHooks", kernel.Invalid, err, "WITAN_TEST_BUS is malformed")
		}
		t.bus = func(b kernel.Bus) kernel.Bus {
			return bus.Chaos(b, seed, bus.ChaosOptions{Drop: 0.2, Double: 0.2, Shuffle: 0.1})
		}
	}
	if s := os.Getenv("WITAN_TEST_CRASH"); s != "" {
		point, n, _ := strings.Cut(s, ":")
		left, err := strconv.Atoi(n)
		if err != nil {
			return t, kernel.E("host.readTestHooks", kernel.Invalid, err, "WITAN_TEST_CRASH is malformed")
		}
		t.crash = func(at string) {
			if at == point {
				if left--; left == 0 {
					proc.KillSelf()
				}
			}
		}
	}
	if f := os.Getenv("WITAN_TEST_CRASH_ONCE"); f != "" {
		t.beforeAppend = crashOnce(f)
	}
	return t, nil
}

// crashOnce kills the process the first time a record comes up in a phase,
// whichever try it is of.
func crashOnce(file string) func([]kernel.Record) {
	phases := map[kernel.AttemptID]string{}
	return func(recs []kernel.Record) {
		seen, _ := os.ReadFile(file)
		for _, r := range recs {
			var b struct {
				Phase string `json:"phase"`
			}
			_ = json.Unmarshal(r.Body, &b)
			if r.Kind == kernel.AttemptQueued {
				phases[r.Attempt] = b.Phase
			}
			if b.Phase == "" {
				b.Phase = phases[r.Attempt]
			}
			name := []byte(string(r.Kind) + " " + r.Stage + " " + b.Phase + "\n")
			if bytes.Contains(seen, name) {
				continue
			}
			if err := os.WriteFile(file, append(seen, name...), 0o600); err == nil {
				proc.KillSelf()
			}
		}
	}
}

// seeded makes the same ids in every process that asks in the same order.
func seeded(seed string) func(string) (string, error) {
	var mu sync.Mutex
	asked := map[string]int{}
	return func(prefix string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[prefix]++
		return kernel.DeriveID(prefix, seed, strconv.Itoa(asked[prefix])), nil
	}
}
