package config

import (
	"strings"
	"testing"
	"time"

	"witan/kernel"
)

func TestParse(t *testing.T) {
	c := Default()
	err := Parse([]byte(`
encryption = false
[agents.alpha]
name = "Alpha"
protocol = "acp"
command = ["fakeagent", "alpha.json"]
env = { KEY = "value" }
state = ["~/.alpha"]
[run]
concurrency = 2
[watchdog]
startup = "1s"
[budget]
tokens = 5
elapsed = "30m"
output_tokens = { limit = 4, soft = true }
[prices."model-name"]
input = 3
`), "c.toml", &c)
	if err != nil {
		t.Fatal(err)
	}
	if c.Encryption || c.Agents["alpha"].Command[1] != "alpha.json" || c.Run.Concurrency != 2 ||
		time.Duration(c.Watchdog.Startup) != time.Second || c.Run.Plan != "batch" || c.Prices["model-name"].Input != 3 {
		t.Fatalf("%+v", c)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tc := range []struct{ in, what, next string }{
		{"encrypton = false", `line 1: unknown key "encrypton"`, `"encryption"`},
		{"[run]\nplan = \"batch\"\nconcurency = 3", `line 3: unknown key "run.concurency"`, `"run.concurrency"`},
		{"[agents.a]\nprotocol=\"acp\"\ncomand=[\"x\"]", `line 3: unknown key "agents.a.comand"`, `"agents.a.command"`},
		{"[run]\nplan = \"botch\"", `line 2: plan "botch"`, "batch"},
		{"[run]\nconcurrency = 0", "concurrency is 0", "1 to 64"},
		{"[watchdog]\nstartup = \"soon\"", "soon", "correct"},
		{"[agents.A]\nprotocol=\"acp\"\ncommand=[\"x\"]", `agent id "A"`, "rename"},
		{"[agents.a]\nprotocol=\"telnet\"\ncommand=[\"x\"]", `protocol "telnet"`, "acp"},
		{"[agents.a]\nprotocol=\"acp\"", "no command", "command"},
		{"[bus]\nurl = \"nats://h:1\"", "not in this version", "memory"},
		{"= 1", "line 1", "correct"},
	} {
		c := Default()
		err := Parse([]byte(tc.in), "c.toml", &c)
		var next string
		if e, ok := err.(*kernel.Error); ok {
			next = e.Next
		}
		if err == nil || !strings.Contains(err.Error(), tc.what) || !strings.Contains(next, tc.next) {
			t.Errorf("%q: got %v (%s), want %q (%q)", tc.in, err, next, tc.what, tc.next)
		}
	}
}
