// Package uitest has what tests and pictures of the window need: a host that never
// was, with conversations that show every kind of row, and a screen that is driven
// by the names of its controls. Only tests import it.
package uitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"witan/ui/model"
)

// Now is the moment at which all samples are looked at.
var Now = time.Date(2026, 11, 30, 15, 24, 10, 0, time.UTC)

// Ids of the sample conversations.
const (
	Council = "conv_council" // a council at work
	Gated   = "conv_gated"   // a permission waits, with findings
	Article = "conv_article" // one agent, every kind of Markdown
	Ended   = "conv_ended"   // a batch that ended partial
)

func hash(seed int) string {
	return fmt.Sprintf("sha256:%016x%016x%016x%016x", uint64(seed)*0x9E3779B97F4A7C15, uint64(seed)*0xC2B2AE3D27D4EB4F, seed*7919, seed*104729)
}

// Lists are the lists of the sample host.
func Lists() model.Lists {
	ago := func(d time.Duration) time.Time { return Now.Add(-d) }
	conv := func(id, title, dir, plan string, messages int, d time.Duration) model.Conversation {
		return model.Conversation{ID: id, Title: title, Workspace: "/home/ada/src/" + dir, Agents: []string{"codex", "opencode", "inspector"},
			Plan: plan, Permission: "ask", Messages: messages, Updated: ago(d)}
	}
	ended := ago(50 * time.Minute)
	return model.Lists{
		Conversations: []model.Conversation{
			conv(Council, "Uploads lose their last byte", "image-store", "council", 6, 20*time.Second),
			conv(Gated, "Cache stays stale after a deploy", "image-store", "council", 5, 4*time.Minute),
			conv(Article, "How thumbnails are made", "image-store", "direct", 2, 3*time.Hour),
			conv(Ended, "Translate the release notes", "handbook", "batch", 4, 55*time.Minute),
			conv("conv_old", "Broken cross references", "handbook", "batch", 9, 4*24*time.Hour),
		},
		Agents: []model.Agent{
			{ID: "codex", Name: "Codex", Protocol: "codex-json", Version: "0.171.0", Status: "ready"},
			{ID: "opencode", Name: "OpenCode", Protocol: "acp", Version: "1.18.33", Status: "ready"},
			{ID: "inspector", Name: "Inspector", Protocol: "builtin", Status: "ready"},
			{ID: "gemini", Name: "Gemini CLI", Protocol: "acp", Version: "0.61.0", Status: "needs-sign-in", Reason: "signed_out", Next: "run gemini once in a terminal"},
			{ID: "kimi", Name: "Kimi Code", Protocol: "acp", Status: "not-installed", Reason: "command_not_found", Next: "witan agents install kimi"},
		},
		Gates: []model.Gate{},
		Runs: []model.Run{
			{ID: "run_council", Conversation: Council, Status: "running", Plan: "council", Created: ago(3 * time.Minute)},
			{ID: "run_gated", Conversation: Gated, Status: "running", Plan: "council", Created: ago(9 * time.Minute)},
			{ID: "run_ended", Conversation: Ended, Status: "completed", Plan: "batch", Created: ago(time.Hour), Finished: &ended},
		},
	}
}

// Script writes the lines of a run as a host would.
type Script struct {
	Run   string
	Conv  string
	Lines []json.RawMessage
	at    time.Time
	seq   int
}

// NewScript begins the lines of a run.
func NewScript(conv, run string, start time.Time) *Script {
	return &Script{Run: run, Conv: conv, at: start}
}

// After lets time pass.
func (s *Script) After(d time.Duration) *Script { s.at = s.at.Add(d); return s }

// Add writes a line; fields alternate between names and values.
func (s *Script) Add(kind string, fields ...any) *Script {
	s.seq++
	m := map[string]any{"type": kind, "run": s.Run, "seq": s.seq, "at": s.at.Format(time.RFC3339Nano)}
	for i := 0; i+1 < len(fields); i += 2 {
		m[fields[i].(string)] = fields[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // a fault of the sample
	}
	s.Lines = append(s.Lines, b)
	return s
}

// Phase begins a phase for some agents.
func (s *Script) Phase(name string, agents ...string) *Script {
	var slots []map[string]any
	for _, a := range agents {
		slots = append(slots, map[string]any{"agent": a})
	}
	s.Add("phase.started", "phase", name, "round", 1, "slots", slots)
	for _, a := range agents {
		s.Add("attempt.queued", "attempt", name+"-"+a, "agent", a, "phase", name, "round", 1, "try", 1)
	}
	return s
}

// Start lets an agent begin; Stage ends one of its stages.
func (s *Script) Start(phase, agent string, fields ...any) *Script {
	at := phase + "-" + agent
	s.Add("attempt.started", append([]any{"attempt", at, "agent", agent, "phase", phase, "round", 1, "try", 1}, fields...)...)
	return s.Stage(at, "deliver", 8)
}

// Stage ends a stage of an attempt.
func (s *Script) Stage(attempt, stage string, ms int) *Script {
	return s.Add("stage.finished", "attempt", attempt, "stage", stage, "impl", stage+"/sample", "ms", ms, "in", hash(s.seq), "out", hash(s.seq+1))
}

// Tool ends a tool call of an agent.
func (s *Script) Tool(phase, agent, id, kind, title, status string) *Script {
	return s.Add("tool", "attempt", phase+"-"+agent, "agent", agent, "id", id, "kind", kind, "title", title, "status", status)
}

// Say lets an agent finish its turn with a text.
func (s *Script) Say(phase, agent, text string, in, out int) *Script {
	at := phase + "-" + agent
	s.Add("text", "attempt", at, "agent", agent, "delta", text)
	for _, st := range []string{"invoke", "receipt", "verify", "commit"} {
		s.Stage(at, st, 40)
	}
	s.Add("attempt.finished", "attempt", at, "agent", agent, "phase", phase, "round", 1, "try", 1, "status", "completed",
		"usage", map[string]any{"input": in, "output": out, "complete": true})
	return s.Add("message", "attempt", at, "agent", agent, "message", "msg_"+s.Run+at, "role", "agent", "status", "completed", "text", text, "turn_seq", s.seq)
}

// Open begins a run with its snapshot.
func (s *Script) Open(plan, permission, title string, agents ...string) *Script {
	s.Add("run.created", "conversation", s.Conv, "plan", plan, "permission", permission, "agents", agents, "title", title, "message", "msg_"+s.Run, "turn_seq", 1)
	s.Add("stage.finished", "stage", "freeze", "impl", "freeze/workspace", "ms", 38, "in", hash(1), "out", hash(2))
	return s.Add("snapshot.frozen", "snapshot", hash(2))
}

func council() *Script {
	s := NewScript(Council, "run_council", Now.Add(-3*time.Minute))
	s.Open("council", "ask", "Large uploads arrive one byte short. Find out why, agree on one fix, and show with a test that it holds.", "codex", "opencode", "inspector")
	s.Phase("proposal", "codex", "opencode", "inspector")
	for _, a := range []string{"codex", "opencode", "inspector"} {
		s.Start("proposal", a)
	}
	s.After(2*time.Second).Say("proposal", "inspector", "Nothing is wrong with files or links. `go vet` is silent; `upload_test.go` covers sizes up to 4 KiB only.", 800, 90)
	s.Tool("proposal", "codex", "1", "read", "store/upload.go", "completed").Tool("proposal", "codex", "2", "search", "io.LimitReader", "completed")
	s.After(36*time.Second).Say("proposal", "codex", "`copyBody` stops at `Content-Length - 1`: the limit is exclusive, the loop treats it as inclusive. Only bodies over one buffer show it. Read to the end and compare the count.", 3600, 420)
	s.After(14*time.Second).Say("proposal", "opencode", "Same place. Besides, the checksum is taken from what was *read*, not from what was *stored*, so the loss goes unnoticed. Take it from the writer.", 4300, 610)
	s.Add("phase.finished", "phase", "proposal", "round", 1, "status", "completed")
	s.Phase("challenge", "codex", "opencode", "inspector")
	for _, a := range []string{"codex", "opencode", "inspector"} {
		s.Start("challenge", a)
	}
	s.After(9*time.Second).Say("challenge", "inspector", "Both claims name lines that exist in the snapshot.", 300, 30)
	s.After(11*time.Second).Say("challenge", "codex", "Two packages, then one change:\n\n- **W1** codex: read to the end, compare the count\n- **W2** opencode: take the checksum from the writer, needs W1\n- **W3** inspector: a failing test with 64 KiB first", 2100, 240)
	s.After(4*time.Second).Say("challenge", "opencode", "Agreed. The test has to fail on the snapshot.", 1900, 60)
	s.Add("phase.finished", "phase", "challenge", "round", 1, "status", "completed")
	item := func(id, owner, role, what string, after ...string) map[string]any {
		return map[string]any{"id": id, "owner": owner, "role": role, "objective": what, "depends_on": after}
	}
	s.Add("plan.agreed", "plan_hash", hash(77), "finalizer", "codex", "items", []any{
		item("W1", "codex", "worker", "read to the end"), item("W3", "inspector", "worker", "failing test"),
		item("W2", "opencode", "worker", "checksum", "W1"), item("S", "codex", "integrator", "integrate", "W2", "W3")})
	s.Phase("work", "codex", "inspector", "opencode")
	s.Start("work", "inspector", "item", "W3").After(8*time.Second).Say("work", "inspector", "`TestUploadLarge` fails on the snapshot: *want 65536 bytes, got 65535*.", 500, 60)
	s.Start("work", "codex", "item", "W1")
	s.Tool("work", "codex", "1", "read", "store/upload.go", "completed").Tool("work", "codex", "2", "edit", "store/upload.go", "completed")
	s.Tool("work", "codex", "3", "run", "go test ./store", "completed").Tool("work", "codex", "4", "search", "copyBody", "completed")
	s.Tool("work", "codex", "5", "read", "store/upload_test.go", "in_progress")
	s.Add("text", "attempt", "work-codex", "agent", "codex", "delta", "The count is compared now and a short body is an error. Reading who else calls `copyBody`, because two callers pass a limit of")
	return s
}

const change = `@@ -41,7 +41,9 @@ func (c *Cache) Get(key string) ([]byte, error) {
 	e, ok := c.entries[key]
-	if !ok {
+	if !ok || e.generation != c.generation {
+		delete(c.entries, key)
 		return nil, ErrMiss
 	}`

func gated() *Script {
	s := NewScript(Gated, "run_gated", Now.Add(-9*time.Minute))
	s.Open("council", "ask", "After a deploy some nodes serve old thumbnails for an hour. Make the cache notice.", "codex", "opencode", "inspector")
	s.Phase("synthesis", "opencode").Start("synthesis", "opencode")
	s.Tool("synthesis", "opencode", "1", "edit", "cache/cache.go", "pending")
	s.After(7*time.Minute).Add("text", "attempt", "synthesis-opencode", "agent", "opencode", "delta", "Each entry carries the generation it was made in; a deploy raises it. One edit needs you.")
	option := func(id, name string) map[string]any { return map[string]any{"id": id, "kind": id, "name": name} }
	s.Add("gate.opened", "gate", "gate_edit", "kind", "permission", "attempt", "synthesis-opencode", "agent", "opencode", "summary", "Edit cache/cache.go in the workspace",
		"target", change, "options", []any{option("allow-once", "Allow once"), option("allow-run", "Allow for this run"), option("reject", "Reject")})
	s.Add("evidence", "id", "evd_1", "attempt", "synthesis-opencode", "agent", "inspector", "kind", "test output", "level", "reproduced", "summary", "go test ./cache, exit 1", "hash", hash(91))
	s.Add("finding", "id", "fnd_1", "attempt", "synthesis-opencode", "agent", "inspector", "severity", "high", "title", "Eviction races with Get",
		"detail", "Get deletes without the write lock, so two readers can delete the entry that a third has just stored.", "path", "cache/cache.go", "line", 44, "evidence", []string{"evd_1"})
	s.Add("finding", "id", "fnd_2", "attempt", "synthesis-opencode", "agent", "codex", "severity", "medium", "title", "The generation may wrap",
		"detail", "It is one byte wide; 256 deploys later an old entry is current again.", "path", "cache/entry.go", "line", 9)
	s.Add("adoption", "id", "fnd_2", "state", "accepted", "by", "person")
	s.Add("verify", "claim", "go test ./cache passes", "source", "command", "verdict", "contradicted", "reason", "exit")
	s.Add("verify", "claim", "go vet ./... is silent", "source", "command", "verdict", "verified")
	s.Add("verify", "claim", "An entry of an older generation is a miss", "source", "agent", "verdict", "unverified", "reason", "no_command")
	s.Add("artifact", "id", "art_1", "attempt", "synthesis-opencode", "agent", "opencode", "kind", "diff", "summary", "cache.go: entries carry a generation", "path", "cache/cache.go", "hash", hash(92))
	return s
}

func article() *Script {
	s := NewScript(Article, "run_article", Now.Add(-3*time.Hour))
	s.Open("direct", "read-only", "How are thumbnails made, and where does the time go?", "codex")
	s.Phase("respond", "codex").Start("respond", "codex").After(21*time.Second).Say("respond", "codex", Markdown, 5200, 900)
	s.Add("run.finished", "status", "completed", "usage", map[string]any{"input": 5200, "output": 900, "complete": true})
	return s
}

func ended() *Script {
	s := NewScript(Ended, "run_ended", Now.Add(-time.Hour))
	s.Open("batch", "read-only", "Translate the release notes into German.", "codex", "opencode")
	s.Phase("respond", "codex", "opencode").Start("respond", "codex").Start("respond", "opencode")
	s.After(18*time.Second).Say("respond", "codex", "> **Neu:** Hochladen prüft die Länge.\n\nDrei Absätze, ein Begriff blieb offen: *generation*.", 900, 130)
	s.Add("attempt.finished", "attempt", "respond-opencode", "agent", "opencode", "phase", "respond", "round", 1, "try", 1, "status", "failed", "class", "rate-limit", "reason", "rate_limited")
	s.Add("notice", "attempt", "respond-opencode", "code", "silent", "text", "The provider limits the rate; it can be tried again after 15:40.")
	s.Add("run.finished", "status", "partial", "reason", "some_agents_failed", "usage", map[string]any{"input": 900, "output": 130, "complete": false})
	return s
}

// Markdown has every kind of block that is drawn.
const Markdown = "# Thumbnails\n\nA request for `/t/ID?w=320` goes through **three steps**; see the [overview](https://example.org/overview) or *measure it yourself*.\n\n" +
	"## Steps\n\n1. Look in the cache\n2. Decode, then scale\n   - JPEG takes a *fast* path\n   - everything else is ~~slow~~ general\n3. Store and answer\n\n" +
	"```go\n// Scale returns img at most w pixels wide.\nfunc Scale(img image.Image, w int) image.Image {\n\tif img.Bounds().Dx() <= w {\n\t\treturn img // nothing to do\n\t}\n\treturn draw(img, w, \"lanczos\")\n}\n```\n\n" +
	"| Step | Median | Share |\n|:--|--:|:-:|\n| Cache | 0.2 ms | 1 % |\n| Decode | 11.8 ms | 62 % |\n| Scale | 7.1 ms | 37 % |\n\n" +
	"> Decoding dominates. A larger cache helps more than a faster scaler.\n\n- [x] profile taken\n- [ ] cache size chosen\n\n---\n\nMixed text: 缩略图在三个步骤中生成，解码占用了大部分时间。 😀\n"

// Threads are the lines of each sample conversation: its snapshot, then its run.
func Threads() map[string][]json.RawMessage {
	out := map[string][]json.RawMessage{}
	for _, s := range []*Script{council(), gated(), article(), ended()} {
		out[s.Conv] = s.Attach("5e1f0c2a77", 1)
	}
	return out
}

// Attach gives the script as an attachment would: a snapshot without the run, then
// its lines with epoch and revision.
func (s *Script) Attach(epoch string, revision uint64) []json.RawMessage {
	var conv model.Conversation
	for _, c := range Lists().Conversations {
		if c.ID == s.Conv {
			conv = c
		}
	}
	b, err := json.Marshal(map[string]any{"type": "snapshot", "epoch": epoch, "revision": revision, "conversation": conv, "messages": []any{}, "runs": []any{}})
	if err != nil {
		panic(err) // a fault of the sample
	}
	out := []json.RawMessage{b}
	for i, l := range s.Lines {
		tail := fmt.Sprintf(`,"epoch":%q,"revision":%d}`, epoch, revision+uint64(i)+1)
		out = append(out, json.RawMessage(strings.TrimSuffix(string(l), "}")+tail))
	}
	return out
}

// State is the sample host with one conversation open; "" opens none.
func State(conversation string) *model.State {
	s := (&model.State{Home: "/home/ada"}).With(Lists())
	for _, l := range Threads()[conversation] {
		next, fit, err := s.Raw(l)
		if err != nil || fit != model.Fits {
			panic(fmt.Sprintf("the sample does not fit: %v %v: %s", fit, err, l))
		}
		s = next
	}
	// The gate of the other conversation is known from the list of gates.
	return s.With(model.Lists{Gates: append([]model.Gate{{ID: "gate_edit", Run: "run_gated", Kind: "permission"}}, others(s.Gates)...)})
}

func others(gs []model.Gate) []model.Gate {
	var out []model.Gate
	for _, g := range gs {
		if g.ID != "gate_edit" {
			out = append(out, g)
		}
	}
	return out
}

// Packs are the texts of the packs that the samples name.
func Packs() map[string]string {
	return map[string]string{
		hash(91): "--- FAIL: TestGetWhileEvicting (0.02s)\n    cache_test.go:61: want 1 entry, got 0\nFAIL\n",
		hash(92): change,
	}
}

// Clock always says Now.
func Clock() time.Time { return Now }

// Long is the snapshot of a conversation with n messages, two to a run, every
// other of them in Markdown.
func Long(n int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"snapshot","epoch":"e","revision":1,"conversation":{"conversation":"conv_long","title":"Long","plan":"direct"},"runs":[`)
	for i := range (n + 1) / 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"run":"r%d","conversation":"conv_long","status":"completed","plan":"direct","agents":["codex"]}`, i)
	}
	b.WriteString(`],"messages":[`)
	body, err := json.Marshal(Markdown)
	if err != nil {
		panic(err) // a fault of the sample
	}
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"message":"m%d","role":"user","run":"r%d","turn_seq":%d,"text":"Question %d?"}`, i, i/2, i, i)
			continue
		}
		text := fmt.Sprintf(`"Answer %d in one line."`, i)
		if i%4 == 1 {
			text = string(body)
		}
		fmt.Fprintf(&b, `{"message":"m%d","role":"agent","agent":"codex","run":"r%d","turn_seq":%d,"status":"completed","text":%s}`, i, i/2, i, text)
	}
	b.WriteString(`]}`)
	return json.RawMessage(b.String())
}
