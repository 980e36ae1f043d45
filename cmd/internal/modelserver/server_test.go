package modelserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"witan/cmd/internal/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server for the scenario and returns its base URL and what it saw.
func start(t *testing.T, scenario string) (string, func() []modelserver.Exchange) {
	t.Helper()
	s, err := modelserver.Parse([]byte(scenario))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []modelserver.Exchange
	srv, err := modelserver.Start("127.0.0.1:0", s, func(e modelserver.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv.URL(), func() []modelserver.Exchange {
		mu.Lock()
		defer mu.Unlock()
		return append([]modelserver.Exchange(nil), seen...)
	}
}

type object = map[string]any

// shellTool and writeTool are what an agent declares; their names differ from
// those of the intents on purpose.
var (
	shellTool = declare("run_shell_command", object{"command": object{"type": "string"}, "description": object{"type": "string"}}, "command", "description")
	writeTool = declare("Write_File", object{"filePath": object{"type": "string"}, "content": object{"type": "string"}}, "filePath", "content")
	readTool  = declare("read", object{"path": object{"type": "string"}, "limit": object{"type": "integer", "minimum": 3.0}}, "path", "limit")
)

func declare(name string, props object, required ...string) object {
	return object{"type": "function", "function": object{"name": name,
		"parameters": object{"type": "object", "properties": props, "required": required}}}
}

func says(role, text string) object { return object{"role": role, "content": text} }

func post(t *testing.T, ctx context.Context, url string, body object) (*http.Response, error) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/chat/completions", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return http.DefaultClient.Do(req)
}

type message struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	ToolCalls []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type completion struct {
	ID      string `json:"id"`
	Choices []struct {
		Message message `json:"message"`
		Delta   message `json:"delta"`
		Finish  *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	Error struct {
		Code, Type, Message string
	} `json:"error"`
}

// ask returns the whole answer; streamed ones are put together.
func ask(t *testing.T, url string, stream bool, body object) completion {
	t.Helper()
	body["model"], body["stream"] = "scripted", stream
	if stream {
		body["stream_options"] = object{"include_usage": true}
	}
	resp, err := post(t, t.Context(), url, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if stream && resp.StatusCode == http.StatusOK {
		c, done, err := assemble(resp.Body)
		if err != nil || !done {
			t.Fatalf("stream did not end well: done %v, %v", done, err)
		}
		return c
	}
	var c completion
	if err := json.NewDecoder(resp.Body).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func assemble(r io.Reader) (out completion, done bool, err error) {
	var m message
	var finish *string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return out, done, err
		}
		if out.ID != "" && c.ID != out.ID {
			return out, done, fmt.Errorf("id changed from %s to %s", out.ID, c.ID)
		}
		out.ID = c.ID
		if c.Usage != nil {
			out.Usage = c.Usage
		}
		for _, ch := range c.Choices {
			m.Content += ch.Delta.Content
			m.Reasoning += ch.Delta.Reasoning
			for _, tc := range ch.Delta.ToolCalls {
				if tc.Index == len(m.ToolCalls) {
					m.ToolCalls = append(m.ToolCalls, tc)
					continue
				}
				m.ToolCalls[tc.Index].Function.Arguments += tc.Function.Arguments
			}
			if ch.Finish != nil {
				finish = ch.Finish
			}
		}
	}
	out.Choices = append(out.Choices, struct {
		Message message `json:"message"`
		Delta   message `json:"delta"`
		Finish  *string `json:"finish_reason"`
	}{Message: m, Finish: finish})
	return out, done, lines.Err()
}

func TestStepsFollowTheConversation(t *testing.T) {
	const scenario = `{"scripts":[
		{"when":"plant","steps":[{"think":"First…","say":"Writing, ünïcode too.","chunk":3,"use":[{"intent":"write","path":"a b.txt","content":"it's"}]},
		                          {"use":[{"intent":"shell","command":"ls"},{"intent":"read","path":"x"},{"name":"own","args":{"k":1}}]},
		                          {"say":"Done.","in":7,"out":3}]},
		{"when":"long","steps":[{"say":"cut sh","length":true}]}],
		"otherwise":[{"say":"one"},{"say":"two"}]}`
	tools := []object{shellTool, writeTool, readTool}
	user, model := says("user", "please plant it"), says("assistant", "…")
	parts := object{"role": "user", "content": []object{{"type": "text", "text": "please plant"}, {"type": "text", "text": "it"}}}
	result := object{"role": "tool", "tool_call_id": "c", "content": "plant: ok"}
	tests := []struct {
		name                 string
		messages             []object
		text, reason, finish string
		calls                []string // name and arguments
	}{
		{"first", []object{user}, "Writing, ünïcode too.", "First…", "tool_calls", []string{`Write_File {"content":"it's","filePath":"a b.txt"}`}},
		{"content in parts", []object{parts}, "Writing, ünïcode too.", "First…", "tool_calls", []string{`Write_File {"content":"it's","filePath":"a b.txt"}`}},
		{"second", []object{user, model, result}, "", "", "tool_calls",
			[]string{`run_shell_command {"command":"ls","description":""}`, `read {"limit":3,"path":"x"}`, `own {"k":1}`}},
		{"text and call of one turn stored apart", []object{user, model, model, result}, "", "", "tool_calls",
			[]string{`run_shell_command {"command":"ls","description":""}`, `read {"limit":3,"path":"x"}`, `own {"k":1}`}},
		{"third", []object{user, model, result, model, result}, "Done.", "", "stop", nil},
		{"past the end", []object{user, model, result, model, result, model, result}, "Done.", "", "stop", nil},
		{"a reminder after it", []object{user, says("user", "system reminder")}, "Writing, ünïcode too.", "First…", "tool_calls",
			[]string{`Write_File {"content":"it's","filePath":"a b.txt"}`}},
		{"the newest turn that matches", []object{user, model, says("user", "long")}, "cut sh", "", "length", nil},
		{"a tool result never matches", []object{says("user", "hi"), model, result}, "two", "", "stop", nil},
		{"no match", []object{says("user", "hi")}, "one", "", "stop", nil},
	}
	url, seen := start(t, scenario)
	for _, tt := range tests {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stream=%v", tt.name, stream), func(t *testing.T) {
				c := ask(t, url, stream, object{"messages": append([]object{says("system", "plant")}, tt.messages...), "tools": tools})
				m := c.Choices[0].Message
				if m.Content != tt.text || m.Reasoning != tt.reason || *c.Choices[0].Finish != tt.finish {
					t.Errorf("got %q, %q, %s", m.Content, m.Reasoning, *c.Choices[0].Finish)
				}
				var calls []string
				ids := map[string]bool{}
				for _, tc := range m.ToolCalls {
					calls, ids[tc.ID] = append(calls, tc.Function.Name+" "+tc.Function.Arguments), true
				}
				if fmt.Sprint(calls) != fmt.Sprint(tt.calls) || len(ids) != len(tt.calls) {
					t.Errorf("calls %q with ids %v", calls, ids)
				}
				if c.Usage == nil || tt.name == "third" && (c.Usage.Prompt != 7 || c.Usage.Completion != 3) {
					t.Errorf("usage %+v", c.Usage)
				}
			})
		}
	}
	if n := len(seen()); n != 2*len(tests) {
		t.Errorf("observed %d requests of %d", n, 2*len(tests))
	}
}

func TestIDsAreUnique(t *testing.T) {
	url, _ := start(t, `{"otherwise":[{"use":[{"intent":"shell","command":"ls"}]}]}`)
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			c := ask(t, url, true, object{"messages": []object{says("user", "same")}, "tools": []object{shellTool}})
			mu.Lock()
			defer mu.Unlock()
			ids[c.ID], ids[c.Choices[0].Message.ToolCalls[0].ID] = true, true
		})
	}
	wg.Wait()
	if len(ids) != 40 {
		t.Errorf("%d different ids of 40", len(ids))
	}
}

func TestToolsThatAreMissing(t *testing.T) {
	url, _ := start(t, `{"scripts":[{"when":"write","steps":[{"use":[{"intent":"write","path":"it's","content":"a'b"}]}]},
		{"when":"read","steps":[{"say":"Reading","use":[{"intent":"read","path":"x"}]}]}]}`)
	c := ask(t, url, false, object{"messages": []object{says("user", "write")}, "tools": []object{shellTool}})
	if got := c.Choices[0].Message.ToolCalls[0].Function.Arguments; got != `{"command":"printf %s 'a'\\''b' \u003e 'it'\\''s'","description":""}` {
		t.Errorf("a write through the shell: %s", got)
	}
	c = ask(t, url, false, object{"messages": []object{says("user", "read")}, "tools": []object{shellTool}})
	if m := c.Choices[0].Message; m.Content != "Reading [the agent declared no tool to read]" || m.ToolCalls != nil {
		t.Errorf("got %+v", m)
	}
}

func TestSideRequests(t *testing.T) {
	url, seen := start(t, `{"side_reply":"A title","otherwise":[{"say":"main"}]}`)
	if c := ask(t, url, true, object{"messages": []object{says("user", "name this")}}); c.Choices[0].Message.Content != "A title" {
		t.Errorf("a request without tools got %q", c.Choices[0].Message.Content)
	}
	schema := object{"type": "object", "required": []string{"a", "b", "c", "d", "e", "f", "g"}, "$defs": object{"n": object{"type": "integer", "minimum": 2}},
		"properties": object{
			"a": object{"type": "string", "minLength": 2}, "b": object{"enum": []string{"yes", "no"}}, "c": object{"$ref": "#/$defs/n"},
			"d": object{"type": "array", "minItems": 1, "items": object{"type": "boolean"}}, "e": object{"anyOf": []object{{"type": "null"}, {"type": "string"}}},
			"f": object{"type": "object"}, "g": object{"const": "k"}, "optional": object{"type": "string"}}}
	c := ask(t, url, false, object{"messages": []object{says("user", "judge")}, "tools": []object{shellTool},
		"response_format": object{"type": "json_schema", "json_schema": object{"name": "verdict", "schema": schema}}})
	if got := c.Choices[0].Message.Content; got != `{"a":"xx","b":"yes","c":2,"d":[false],"e":null,"f":{},"g":"k"}` {
		t.Errorf("smallest value: %s", got)
	}
	c = ask(t, url, false, object{"messages": []object{says("user", "judge")}, "response_format": object{"type": "json_object"}})
	if got := c.Choices[0].Message.Content; got != `{}` {
		t.Errorf("any JSON: %s", got)
	}
	if got := seen(); got[0].Step != "side" || got[1].Step != "schema" || got[0].User != "name this" {
		t.Errorf("observed %+v", got)
	}
}

func TestFailures(t *testing.T) {
	const scenario = `{"scripts":[
		{"when":"401","steps":[{"fail":{"status":401}}]},
		{"when":"429","steps":[{"fail":{"status":429,"retry_after":3,"times":2}},{"say":"after"}]},
		{"when":"500","steps":[{"fail":{"status":500,"message":"on fire","code":"odd"}}]}]}`
	url, _ := start(t, scenario)
	tests := []struct {
		text          string
		status        int
		code, message string
		retry         string
	}{
		{"401", 401, "invalid_api_key", "Unauthorized", ""},
		{"429", 429, "rate_limit_exceeded", "Too Many Requests", "3"},
		{"429", 429, "rate_limit_exceeded", "Too Many Requests", "3"},
		{"429", 200, "", "", ""},
		{"429", 200, "", "", ""},
		{"500", 500, "odd", "on fire", ""},
	}
	for i, tt := range tests {
		resp, err := post(t, t.Context(), url, object{"stream": true, "messages": []object{says("user", tt.text)}, "tools": []object{shellTool}})
		if err != nil {
			t.Fatal(err)
		}
		var c completion
		if tt.status != 200 {
			err = json.NewDecoder(resp.Body).Decode(&c)
		}
		resp.Body.Close()
		if err != nil || resp.StatusCode != tt.status || c.Error.Code != tt.code || c.Error.Message != tt.message || resp.Header.Get("Retry-After") != tt.retry {
			t.Errorf("request %d (%s): %d, %+v, Retry-After %q, %v", i, tt.text, resp.StatusCode, c.Error, resp.Header.Get("Retry-After"), err)
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	const scenario = `{"scripts":[{"when":"cut","steps":[{"say":"abcdef","chunk":1,"cut":3}]},{"when":"stall","steps":[{"say":"abcdef","chunk":1,"stall":2}]}]}`
	url, _ := start(t, scenario)
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("cut/stream=%v", stream), func(t *testing.T) {
			resp, err := post(t, t.Context(), url, object{"stream": stream, "messages": []object{says("user", "cut")}, "tools": []object{shellTool}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the connection ended with %v", err)
			}
			if c, done, _ := assemble(bytes.NewReader(b)); stream && (done || c.Choices[0].Message.Content != "abc") {
				t.Errorf("before the cut: %q, done %v", c.Choices[0].Message.Content, done)
			}
		})
		t.Run(fmt.Sprintf("stall/stream=%v", stream), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			resp, err := post(t, ctx, url, object{"stream": stream, "messages": []object{says("user", "stall")}, "tools": []object{shellTool}})
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if stream {
				read := bufio.NewReader(resp.Body)
				for line := ""; !strings.Contains(line, `"content":"b"`); {
					if line, err = read.ReadString('\n'); err != nil {
						t.Fatalf("before the second chunk: %v", err)
					}
				}
			}
			cancel()
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
				t.Errorf("the stalled answer ended by itself: %v", err)
			}
		})
	}
}

func TestCloseEndsStalledAnswers(t *testing.T) {
	s, err := modelserver.Parse([]byte(`{"otherwise":[{"stall":0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := modelserver.Start("127.0.0.1:0", s, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := post(t, t.Context(), srv.URL(), object{"stream": true, "messages": []object{says("user", "x")}, "tools": []object{shellTool}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer ended as if it were whole")
	}
}

func TestWaitBeforeTheFirstByte(t *testing.T) {
	s, err := modelserver.Parse([]byte(`{"otherwise":[{"say":"late","wait_ms":3600000}]}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	// The client gives up as soon as its request is in.
	srv, err := modelserver.Start("127.0.0.1:0", s, func(modelserver.Exchange) { cancel() })
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	resp, err := post(t, ctx, srv.URL(), object{"messages": []object{says("user", "x")}, "tools": []object{shellTool}})
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v before the wait was over", err)
	}
}

func TestModelsAndOtherRoutes(t *testing.T) {
	url, _ := start(t, `{"models":["m1","m2"]}`)
	for path, want := range map[string]string{"/models": `"id":"m2"`, "/embeddings": "no such route", "/chat/completions": "no such route"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %s, %v", path, b, err)
		}
	}
	for _, body := range []string{`{`, `{"messages":[]}`, `{"messages":[{"role":"user","content":7}]}`} {
		resp, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s got %d", body, resp.StatusCode)
		}
	}
}

func TestLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "localhost:0", "127.0.0.1"} {
		srv, err := modelserver.Start(addr, modelserver.Scenario{}, nil)
		if err == nil {
			srv.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestBadScenarios(t *testing.T) {
	for _, s := range []string{
		``, `{"scrpts":[]}`, `{} {}`, `{"scripts":[{"when":"","steps":[{}]}]}`, `{"scripts":[{"when":"x","steps":[]}]}`,
		`{"otherwise":[{"fail":{"status":200}}]}`, `{"otherwise":[{"use":[{"intent":"fly"}]}]}`, `{"otherwise":[{"use":[{}]}]}`,
		`{"scripts":[{"when":"x","steps":[{"use":[{"name":"a","intent":"read"}]}]}]}`,
	} {
		if _, err := modelserver.Parse([]byte(s)); err == nil {
			t.Errorf("%s was accepted", s)
		}
	}
}
