package gemini

import (
	"os"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

// open starts a scripted program; change completes the configuration.
func open(t *testing.T, w *invoketest.World, program string, s invoketest.Script, o invoketest.Options, change ...func(*Config)) kernel.Invoker {
	c := Config{ID: "alpha", Program: program, Spec: w.Program(t, s, []string{"--" + program}, nil), Sessions: w.Mem, Watchdog: o.Watchdog, LineBytes: o.LineBytes, Hide: o.Hide}
	for _, f := range change {
		f(&c)
	}
	return New(c)
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, program := range []string{Gemini, Qwen} {
		t.Run(program, func(t *testing.T) {
			invoketest.Test(t, invoketest.Harness{Process: true, Protocol: true, OneShot: true, NoPending: program == Gemini, Forged: `{"type":"result","status":[],"is_error":7}`,
				Open: func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
					return open(t, w, program, s, o)
				}})
		})
	}
}
