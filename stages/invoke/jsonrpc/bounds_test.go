package jsonrpc

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// deaf is a peer that reads nothing until it is closed.
func deaf(t *testing.T, h Handler) (c *Conn, in *io.PipeWriter, out *io.PipeReader) {
	t.Helper()
	r, in := io.Pipe()
	out, w := io.Pipe()
	c = New(r, w, h, Options{})
	t.Cleanup(func() {
		in.Close()
		w.Close()
		<-c.Done()
	})
	return c, in, out
}

func TestADeafPeerHoldsNobodyUp(t *testing.T) {
	c, _, _ := deaf(t, &peer{})
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	called := make(chan error)
	go func() { _, err := c.Call(ctx, "m", strings.Repeat("x", 1<<20)); called <- err }()
	for range 100 {
		if err := c.Notify("session/cancel", nil); err != nil {
			t.Fatal(err)
		}
	}
	cancel(why)
	if err := <-called; !errors.Is(err, why) {
		t.Fatal(err)
	}
	go func() { _, err := c.Call(context.Background(), "m", nil); called <- err }()
	c.Close()
	if err := <-called; !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// A peer that asks and asks and never reads the answers is slowed down; what
// waits for it is bounded.
func TestAPeerThatNeverReadsIsNotReadEither(t *testing.T) {
	_, in, out := deaf(t, &peer{})
	sent := 0
	wrote := make(chan int)
	go func() {
		defer close(wrote)
		for n := 1; ; n++ {
			if _, err := fmt.Fprintf(in, `{"id":%d,"method":"echo","params":1}`+"\n", n); err != nil {
				return
			}
			wrote <- n
		}
	}()
	for sent < maxRequests {
		sent = <-wrote
	}
	// Now every answer that is read makes room for another question, in any order.
	sc := bufio.NewScanner(out)
	seen := map[int]bool{}
	for len(seen) < 3*maxRequests {
		got := make(chan bool)
		go func() { got <- sc.Scan() }()
		for scanned := false; !scanned; {
			select {
			case scanned = <-got:
			case <-wrote:
			}
		}
		var m struct{ ID int }
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil || seen[m.ID] {
			t.Fatalf("%s %v", sc.Bytes(), err)
		}
		seen[m.ID] = true
	}
	in.Close()
	for range wrote {
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

func TestAnAnswerThatIsThereIsNotLost(t *testing.T) {
	for range 200 {
		l := newLoop(t)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-l.sent
			l.say(`{"id":1,"result":7}`)
			l.say(`{"method":"behind"}`) // when this is taken, the answer was handed over
			cancel()
		}()
		if res, err := l.c.Call(ctx, "m", nil); err != nil || string(res) != "7" {
			t.Fatalf("%s %v", res, err)
		}
	}
}

type unencodable struct{ peer }

func (*unencodable) Request(context.Context, string, json.RawMessage) (any, error) {
	return make(chan int), nil
}

func TestEveryRequestIsAnswered(t *testing.T) {
	w := &sink{}
	c := New(strings.NewReader(`{"id":"a","method":"m"}`), w, &unencodable{}, Options{})
	<-c.Done()
	if out := w.String(); !strings.Contains(out, `"id":"a"`) || !strings.Contains(out, "-32603") {
		t.Fatalf("%q", out)
	}
}

func TestAMarkBeforeAnyLine(t *testing.T) {
	notes, _, err := feed(t, strings.NewReader("banner\n\xef\xbb\xbf\n\xef\xbb\xbf{\"method\":\"a\"}\r\n\xef\xbb\xbf{\"method\":\"b\"}"), Options{})
	if strings.Join(notes, " ") != "a b" || !errors.Is(err, io.EOF) {
		t.Fatalf("%q %v", notes, err)
	}
}

func TestTheLimitIsOfTheContent(t *testing.T) {
	msg := `{"method":"a"}`
	for _, end := range []string{"", "\n", "\r\n"} {
		if notes, _, err := feed(t, strings.NewReader(msg+end), Options{Limit: len(msg)}); len(notes) != 1 || !errors.Is(err, io.EOF) {
			t.Errorf("%q: %q %v", end, notes, err)
		}
		_, _, err := feed(t, strings.NewReader(msg+end), Options{Limit: len(msg) - 1})
		var le *LineError
		if !errors.As(err, &le) || le.Bytes != int64(len(msg)) || le.AtLeast {
			t.Errorf("%q: %v", end, err)
		}
	}
}

// However the reads fall, a line is the same.
func TestLinesAcrossBuffers(t *testing.T) {
	for n := range 70 {
		msg := strings.Repeat("x", n)
		l := lines{r: bufio.NewReaderSize(strings.NewReader(msg+"\r\n"+msg+"\n"+msg), 16), limit: 64, count: 1 << 20}
		for i, want := range []error{nil, nil, io.EOF} {
			line, err := l.next()
			var le *LineError
			if n > 64 && (!errors.As(err, &le) || le.Bytes != int64(n)) || n <= 64 && (string(line) != msg || !errors.Is(err, want) && err != want) {
				t.Errorf("line %d of %d bytes: %q %v", i, n, line, err)
			}
		}
	}
}

func TestALineWithoutAnEndIsGivenUp(t *testing.T) {
	l := lines{r: bufio.NewReader(endless{}), limit: 1 << 10, count: 1 << 20}
	_, err := l.next()
	var le *LineError
	if !errors.As(err, &le) || !le.AtLeast || le.Bytes < 1<<20 || !strings.Contains(err.Error(), "at least") {
		t.Fatal(err)
	}
}

func TestAReadErrorIsNotTakenForMalformed(t *testing.T) {
	why := errors.New("pipe closed")
	_, _, err := feed(t, io.MultiReader(strings.NewReader(`{"method":`), iotest.ErrReader(why)), Options{})
	if !errors.Is(err, why) || errors.Is(err, ErrMalformed) {
		t.Fatal(err)
	}
	_, _, err = feed(t, strings.NewReader(`{"method":`), Options{})
	if !errors.Is(err, ErrMalformed) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	_, _, err = feed(t, strings.NewReader(`{"method":}`+"\n"), Options{})
	if !errors.Is(err, ErrMalformed) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
}

func TestBadBytesAreReplacedOneByOneAndNoted(t *testing.T) {
	line := `{"method":"a","params":{"s":"x` + "\xff\xe2\x82" + `y` + "\xed\x9c" + `"}}`
	var sum [32]byte
	var bad int
	notes, _, _ := feed(t, strings.NewReader(line+"\n"), Options{Repaired: func(s [32]byte, n int) { sum, bad = s, n }})
	if len(notes) != 1 || !strings.Contains(notes[0], "x\uFFFD\uFFFD\uFFFDy\uFFFD\uFFFD") || bad != 5 || sum != sha256.Sum256([]byte(line)) {
		t.Fatalf("%q %d", notes, bad)
	}
}

func TestErrorsInTheWild(t *testing.T) {
	for body, want := range map[string]Error{
		`{"code":"rate_limit","message":"slow down"}`: {Text: "rate_limit", Message: "slow down"},
		`{"code":-1,"message":{"why":"x"}}`:           {Code: -1, Message: `{"why":"x"}`},
		`{"code":1e300,"message":"m"}`:                {Message: "m"},
		`"plain words"`:                               {Message: "plain words"},
	} {
		_, err := result(message{Error: json.RawMessage(body)})
		var e *Error
		if !errors.As(err, &e) || e.Code != want.Code || e.Text != want.Text || e.Message != want.Message {
			t.Errorf("%s: %+v", body, err)
		}
	}
}

// weigh measures what is held while a message is handled.
type weigh struct {
	peer
	held uint64
}

func (w *weigh) Notify(method string, params json.RawMessage) {
	if method == "big" {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.held = m.HeapAlloc
		runtime.KeepAlive(params)
	}
}

func TestALargeLineTakesThreeTimesItsSizeAndIsReleased(t *testing.T) {
	const n = 12 << 20
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := &weigh{}
	c := New(large(n), io.Discard, w, Options{})
	<-c.Done()
	runtime.ReadMemStats(&after)
	if got := int64(w.held) - int64(before.HeapAlloc); got > 3*n {
		t.Errorf("%.1f times the line is held", float64(got)/n)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 7*n/2 {
		t.Errorf("%.1f times the line was allocated", float64(got)/n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > n/4 {
		t.Errorf("%d bytes are still held", got)
	}
	runtime.KeepAlive(c)
}
