package claude

import (
	"os"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

// open starts a scripted agent that speaks this protocol; change completes the
// configuration.
func open(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options, change ...func(*Config)) *Agent {
	c := Config{ID: "alpha", Spec: w.Program(t, s, []string{"--claude"}, nil), Sessions: w.Mem, Watchdog: o.Watchdog, LineBytes: o.LineBytes, Hide: o.Hide}
	for _, f := range change {
		f(&c)
	}
	a := New(c)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func TestContract(t *testing.T) {
	t.Parallel()
	invoketest.Test(t, invoketest.Harness{Process: true, Protocol: true,
		Forged: `{"type":"control_response","response":{"subtype":"success","request_id":"none","response":{}}}`,
		Open: func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
			return open(t, w, s, o)
		}})
}
