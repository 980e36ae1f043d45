package codex

import (
	"os"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
	"witan/stages/invoke/stream"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

// open starts a scripted agent that speaks this protocol; change completes the
// configuration.
func open(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options, change ...func(*Config)) *stream.Agent {
	c := Config{ID: "alpha", Spec: w.Program(t, s, []string{"--codex"}, nil), Sessions: w.Mem, Watchdog: o.Watchdog, LineBytes: o.LineBytes, Hide: o.Hide}
	for _, f := range change {
		f(&c)
	}
	return New(c)
}

func TestContract(t *testing.T) {
	invoketest.Test(t, invoketest.Harness{Process: true, Protocol: true, OneShot: true, Between: "\n\n", Harmless: "search",
		Forged: `{"type":"thread.started","thread_id":"of-somebody-else"}`,
		Open: func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
			return open(t, w, s, o)
		}})
}
