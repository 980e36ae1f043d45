package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer records what the other side calls.
type peer struct {
	mu    sync.Mutex
	notes []string
}

func (p *peer) Notify(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, method+string(params))
}

func (p *peer) Request(_ context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "echo":
		return params, nil
	case "fail":
		return nil, errors.New("no luck")
	}
	return nil, NotFound(method)
}

// sink keeps what is written.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// feed reads all of in and returns what came of it.
func feed(t *testing.T, in io.Reader, opt Options) (notes []string, out string, err error) {
	t.Helper()
	p, w := &peer{}, &sink{}
	c := New(in, w, p, opt)
	<-c.Done()
	return p.notes, w.String(), c.Err()
}

func TestFraming(t *testing.T) {
	note := func(m string) string { return `{"jsonrpc":"2.0","method":"` + m + `"}` }
	for name, tc := range map[string]struct {
		in, notes, noise string
		err              error
	}{
		"one a line":         {note("a") + "\n" + note("b") + "\n", "a b", "", io.EOF},
		"two on a line":      {note("a") + note("b") + " " + note("c") + "\n", "a b c", "", io.EOF},
		"the last unended":   {note("a") + "\n" + note("b"), "a b", "", io.EOF},
		"windows line ends":  {note("a") + "\r\n" + note("b") + "\r\n", "a b", "", io.EOF},
		"banner, mark, void": {"\xef\xbb\xbfWelcome\r\n\n\n" + note("a") + "\nlog line\n" + note("b") + "\n", "a b", "Welcome|log line", io.EOF},
		"cut":                {note("a") + "\n" + `{"jsonrpc":"2.0","meth` + "\n" + note("b") + "\n", "a", `{"jsonrpc":"2.0","meth`, ErrMalformed},
		"cut at the end":     {note("a") + "\n" + `{"jsonrpc"`, "a", `{"jsonrpc"`, ErrMalformed},
		"unknown id":         {`{"jsonrpc":"2.0","id":5,"result":{}}` + "\n", "", "", ErrUnknownID},
		"unknown text id":    {`{"jsonrpc":"2.0","id":"x","result":{}}` + "\n", "", "", ErrUnknownID},
		"no message":         {`{"foo":1}` + "\n" + note("a"), "a", "", io.EOF},
	} {
		for _, slow := range []bool{false, true} {
			var r io.Reader = strings.NewReader(tc.in)
			if slow {
				r = iotest.OneByteReader(r)
			}
			var noise []string
			notes, _, err := feed(t, r, Options{Noise: func(b []byte) { noise = append(noise, string(b)) }})
			if strings.Join(notes, " ") != tc.notes || strings.Join(noise, "|") != tc.noise || !errors.Is(err, tc.err) {
				t.Errorf("%s (byte by byte: %v): %q, noise %q, %v", name, slow, notes, noise, err)
			}
		}
	}
}

func TestUTF8(t *testing.T) {
	text := "é 한 👩\u200d💻"
	in := `{"method":"a","params":{"s":"` + text + `"}}` + "\n" + `{"method":"b","params":{"s":"x` + "\xff" + `y"}}` + "\n"
	notes, _, err := feed(t, iotest.OneByteReader(strings.NewReader(in)), Options{})
	if !errors.Is(err, io.EOF) || len(notes) != 2 {
		t.Fatalf("%q %v", notes, err)
	}
	var v struct{ S string }
	if err := json.Unmarshal([]byte(notes[0][1:]), &v); err != nil || v.S != text {
		t.Errorf("%q %v", v.S, err)
	}
	if err := json.Unmarshal([]byte(notes[1][1:]), &v); err != nil || v.S != "x\uFFFDy" {
		t.Errorf("%q %v", v.S, err)
	}
}

func TestRequestsOfTheOtherSide(t *testing.T) {
	in := `{"id":1,"method":"echo","params":[1]}` + "\n" + `{"id":"two","method":"nope"}` + "\n" + `{"id":3,"method":"fail"}` + "\n"
	_, out, _ := feed(t, strings.NewReader(in), Options{})
	for _, want := range []string{`"id":1,"jsonrpc":"2.0","result":[1]`, `"code":-32601`, `"id":"two"`, `"message":"no luck"`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
}

// large gives a line of n bytes without holding it, then a small message.
func large(n int) io.Reader {
	head, tail := `{"method":"big","params":{"x":"`, `"}}`+"\n"
	return io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, int64(n-len(head)-len(tail))), strings.NewReader(tail+`{"method":"small"}`+"\n"))
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

func TestLargeLines(t *testing.T) {
	for _, n := range []int{70 << 10, 1<<20 + 100<<10, 12 << 20} {
		notes, _, err := feed(t, large(n), Options{})
		if len(notes) != 2 || notes[1] != "small" || len(notes[0]) < n-100 || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes: %d messages, %v", n, len(notes), err)
		}
	}
}

func TestLineOverTheLimitIsCountedAndNotKept(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n, limit = 300 << 20, 1 << 20
	_, _, err := feed(t, large(n), Options{Limit: limit})
	runtime.ReadMemStats(&after)
	var le *LineError
	if !errors.As(err, &le) || le.Bytes != n-1 || le.Limit != limit { // without its end
		t.Fatalf("%v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*limit {
		t.Errorf("%d bytes allocated", grown)
	}
}

// loop is a connection whose other side the test plays.
type loop struct {
	c    *Conn
	in   *io.PipeWriter // what the other side says
	sent chan string    // lines that our side sent
	late chan string
	p    *peer
}

func newLoop(t *testing.T) *loop {
	r, w := io.Pipe()
	or, ow := io.Pipe()
	l := &loop{in: w, sent: make(chan string, 16), late: make(chan string, 1), p: &peer{}}
	l.c = New(r, ow, l.p, Options{Late: func(id string) { l.late <- id }})
	go func() {
		defer close(l.sent)
		b := make([]byte, 1<<16)
		for {
			n, err := or.Read(b)
			if err != nil {
				return
			}
			l.sent <- string(b[:n])
		}
	}()
	t.Cleanup(func() {
		w.Close()
		ow.Close()
		<-l.c.Done()
		for range l.sent {
		}
	})
	return l
}

func (l *loop) say(s string) { _, _ = io.WriteString(l.in, s+"\n") }

func TestNotificationsComeBeforeTheResponseBehindThem(t *testing.T) {
	l := newLoop(t)
	go func() {
		<-l.sent
		for i := range 500 {
			l.say(fmt.Sprintf(`{"method":"n","params":%d}`, i))
		}
		l.say(`{"id":1,"result":{"ok":true}}`)
	}()
	res, err := l.c.Call(context.Background(), "m", nil)
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if err != nil || string(res) != `{"ok":true}` || len(l.p.notes) != 500 || l.p.notes[499] != "n499" {
		t.Fatalf("%s %v after %d", res, err, len(l.p.notes))
	}
}

func TestErrorsOfTheOtherSide(t *testing.T) {
	l := newLoop(t)
	for i, tc := range []struct {
		body string
		code int
	}{{`{"code":-32000,"message":"sign in"}`, -32000}, {`{"code":"401","message":"text code"}`, 401}, {`{"code":1.0,"message":"m","data":{"a":1}}`, 1}, {`"odd"`, 0}} {
		go func() {
			<-l.sent
			l.say(fmt.Sprintf(`{"id":%d,"error":%s}`, i+1, tc.body))
		}()
		_, err := l.c.Call(context.Background(), "m", nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != tc.code {
			t.Errorf("%s: %v", tc.body, err)
		}
	}
}

func TestCancelledCallAnsweredLate(t *testing.T) {
	l := newLoop(t)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-l.sent; cancel() }()
	if _, err := l.c.Call(ctx, "m", nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	l.say(`{"id":1,"result":{}}`)
	if id := <-l.late; id != "1" {
		t.Fatal(id)
	}
	l.say(`{"id":1,"result":{}}`) // settled: a notice, no end
	if id := <-l.late; id != "1" {
		t.Fatal(id)
	}
	if err := l.c.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestCallsEndWithTheConnection(t *testing.T) {
	l := newLoop(t)
	go func() { <-l.sent; l.in.Close() }()
	if _, err := l.c.Call(context.Background(), "m", nil); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"method":"a"}`+"\n"+`{"id":1,"result":1}`), 3)
	f.Add([]byte("\xef\xbb\xbf{\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		whole := func(r io.Reader) (string, error) {
			p := &peer{}
			c := New(r, io.Discard, p, Options{Limit: 1 << 12})
			<-c.Done()
			return strings.Join(p.notes, "|"), c.Err()
		}
		one, err1 := whole(bytes.NewReader(b))
		two, err2 := whole(iotest.OneByteReader(bytes.NewReader(b)))
		if one != two || (err1 == nil) != (err2 == nil) || err1 != nil && err1.Error() != err2.Error() {
			t.Fatalf("%q: whole %q %v, in bytes %q %v", b, one, err1, two, err2)
		}
	})
}
