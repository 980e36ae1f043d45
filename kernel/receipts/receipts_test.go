package receipts_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"witan/kernel"
	"witan/kernel/receipts"
)

// vector is a receipt and what becomes of it. Expected are round 2, the snapshot
// 22…22 and the item W1.
type vector struct {
	Name    string   `json:"name"`
	Phase   string   `json:"phase"`
	Mode    string   `json:"mode"`
	In      string   `json:"in"`
	Code    string   `json:"code"`
	Pointer string   `json:"pointer"`
	Out     string   `json:"out"`
	Dropped []string `json:"dropped"`
}

func expect(phase string) receipts.Expect {
	snap, err := kernel.ParseDigest("sha256:" + strings.Repeat("22", 32))
	if err != nil {
		panic(err)
	}
	return receipts.Expect{Phase: phase, Round: 2, Snapshot: snap, Item: "W1"}
}

func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := kernel.DecodeStrict(b, &vs); err != nil || len(vs) == 0 {
		t.Fatalf("%d vectors, %v", len(vs), err)
	}
	return vs
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			out, dropped, err := receipts.Parse([]byte(v.In), expect(v.Phase), v.Mode == "strict")
			if v.Code != "" {
				var e *receipts.Error
				if !errors.As(err, &e) || e.Code != v.Code || e.Pointer != v.Pointer {
					t.Fatalf("got %q, %v, want %s at %q", out, err, v.Code, v.Pointer)
				}
				return
			}
			if err != nil || string(out) != v.Out || !slices.Equal(dropped, v.Dropped) {
				t.Fatalf("got  %s\nwant %s\ndropped %q, %v", out, v.Out, dropped, err)
			}
		})
	}
}

// Whatever parses is canonical: parsed again it gives the same bytes and drops
// nothing, so no two receipts mean the same.
func holds(t *testing.T, in string, phase string, strict bool) {
	out, _, err := receipts.Parse([]byte(in), expect(phase), strict)
	if err != nil {
		return
	}
	again, dropped, err := receipts.Parse(out, expect(phase), strict)
	if err != nil || !bytes.Equal(out, again) || len(dropped) != 0 {
		t.Fatalf("%s\ngave  %s\nagain %s, dropped %q, %v", in, out, again, dropped, err)
	}
	if c, err := kernel.CanonicalJSON(out); err != nil || !bytes.Equal(c, out) {
		t.Fatalf("not canonical: %s, %v", out, err)
	}
	if !strict {
		return
	}
	if same, err := kernel.CanonicalJSON([]byte(in)); err != nil || !bytes.Equal(same, out) {
		t.Fatalf("strict reading changed %s\ninto %s, %v", in, out, err)
	}
}

func TestWhatParsesIsCanonical(t *testing.T) {
	for _, v := range vectors(t) {
		holds(t, v.In, v.Phase, true)
		holds(t, v.In, v.Phase, false)
	}
}

// Every byte of a receipt counts: no change of one bit gives the same receipt.
func TestNoBitIsIdle(t *testing.T) {
	in := `{"claims":[{"command":"go test ./...","exit":0,"text":"tests pass"}],"phase":"respond","round":2,"summary":"done","version":1}`
	want, _, err := receipts.Parse([]byte(in), expect("respond"), true)
	if err != nil || string(want) != in {
		t.Fatal(string(want), err)
	}
	for i := range len(in) * 8 {
		b := []byte(in)
		b[i/8] ^= 1 << (i % 8)
		if out, _, err := receipts.Parse(b, expect("respond"), true); err == nil && bytes.Equal(out, want) {
			t.Errorf("%s reads as %s", b, out)
		}
	}
}

func TestTooLarge(t *testing.T) {
	at := func(n int) []byte {
		b := []byte(`{"phase":"respond","summary":"s","version":1`)
		return append(append(b, bytes.Repeat([]byte(" "), n-len(b)-1)...), '}')
	}
	if _, _, err := receipts.Parse(at(receipts.MaxBytes), expect("respond"), true); err != nil {
		t.Errorf("64 KiB: %v", err)
	}
	var e *receipts.Error
	for _, strict := range []bool{true, false} {
		if _, _, err := receipts.Parse(at(receipts.MaxBytes+1), expect("respond"), strict); !errors.As(err, &e) || e.Code != receipts.TooLarge {
			t.Errorf("64 KiB and a byte, strict %v: %v", strict, err)
		}
	}
}

func TestBytesThatAreNotText(t *testing.T) {
	var e *receipts.Error
	in := []byte("{\"phase\":\"respond\",\"summary\":\"\xff\",\"version\":1}")
	if _, _, err := receipts.Parse(in, expect("respond"), false); !errors.As(err, &e) || e.Code != receipts.Invalid {
		t.Errorf("%v", err)
	}
}

func TestErrorsStayShort(t *testing.T) {
	key := strings.Repeat("k", 10_000)
	in, err := json.Marshal(map[string]any{"version": 1, "phase": "respond", "summary": "s", key: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := receipts.Parse(in, expect("respond"), true); err == nil || len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.In, v.Phase)
	}
	f.Fuzz(func(t *testing.T, in, phase string) {
		holds(t, in, phase, true)
		holds(t, in, phase, false)
	})
}
