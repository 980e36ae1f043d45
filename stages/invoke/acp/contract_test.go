package acp

import (
	"os"
	"testing"

	"witan/kernel"
	"witan/stages/invoke/invoketest"
)

func TestMain(m *testing.M) { os.Exit(invoketest.Main(m)) }

func config(w *invoketest.World, o invoketest.Options, c Connect) Config {
	return Config{ID: "alpha", Connect: c, Sessions: w.Mem, Watchdog: o.Watchdog, LineBytes: o.LineBytes, Hide: o.Hide, Instance: "host-1"}
}

// open starts a scripted agent in a process of its own.
func open(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
	return New(config(w, o, Process(w.Program(t, s, nil, nil))))
}

func TestContractProcess(t *testing.T) {
	invoketest.Test(t, invoketest.Harness{Open: open, Process: true, Protocol: true, MCP: true})
}

func TestContractInProcess(t *testing.T) {
	invoketest.Test(t, invoketest.Harness{Protocol: true, Open: func(t *testing.T, w *invoketest.World, s invoketest.Script, o invoketest.Options) kernel.Invoker {
		return New(config(w, o, InProcess(invoketest.Serve(s))))
	}})
}
