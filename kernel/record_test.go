package kernel

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)

func testRecord() Record {
	recs, _, _, err := Chain(Head{}, []Record{{Run: "run_0123456789abcdefghjk", At: testTime, Kind: StageStarted, Stage: "invoke",
		Attempt: "atp_x", Body: json.RawMessage(`{"a":"ü"}`)}})
	if err != nil {
		panic(err)
	}
	return recs[0]
}

func TestRecordVectors(t *testing.T) {
	good := string(testRecord().Encode())
	want := `{"at":"2026-01-02T03:04:05.006Z","attempt":"atp_x","body":{"a":"ü"},"kind":"stage.started","prev":"","run":"run_0123456789abcdefghjk","seq":1,"stage":"invoke","v":1}`
	if good != want {
		t.Fatalf("got  %s\nwant %s", good, want)
	}
	if h := HashRecord([]byte(good)).String(); h != "sha256:"+"" && len(h) != 71 {
		t.Fatalf("hash %q", h)
	}
	for name, bad := range map[string]string{
		"unknown field": strings.Replace(good, `"v":1`, `"v":1,"x":1`, 1),
		"white space":   strings.Replace(good, `"v":1`, `"v": 1`, 1),
		"order":         strings.Replace(good, `"seq":1,"stage":"invoke"`, `"stage":"invoke","seq":1`, 1),
		"no sequence":   strings.Replace(good, `"seq":1`, `"seq":0`, 1),
		"float":         strings.Replace(good, `"seq":1`, `"seq":1.0`, 1),
		"duplicate":     strings.Replace(good, `"v":1`, `"v":1,"v":1`, 1),
		"upper hash":    strings.Replace(good, `"prev":""`, `"prev":"sha256:`+strings.Repeat("AB", 32)+`"`, 1),
		"short hash":    strings.Replace(good, `"prev":""`, `"prev":"sha256:ab"`, 1),
		"bad time":      strings.Replace(good, "03:04", "3:04", 1),
		"zone":          strings.Replace(good, ".006Z", ".006+00:00", 1),
		"trailing":      good + "{}",
		"cut":           good[:len(good)-2],
		"empty":         "",
		"too large":     strings.Replace(good, `"ü"`, `"`+strings.Repeat("x", MaxRecordBytes)+`"`, 1),
	} {
		if r, err := DecodeRecord([]byte(bad)); err == nil {
			t.Errorf("%s: decoded as %+v", name, r)
		}
	}
	if _, err := DecodeRecord([]byte(strings.Replace(good, `"v":1`, `"v":2`, 1))); !IsKind(err, Newer) {
		t.Errorf("newer version: got %v", err)
	}
}

func TestChainLinks(t *testing.T) {
	recs, enc, head, err := Chain(Head{}, []Record{{Run: "run_a", At: testTime, Kind: RunCreated}, {Run: "run_a", At: testTime, Kind: NoticeRec}})
	if err != nil || head.Seq != 2 || recs[1].Prev != HashRecord(enc[0]) || head.Hash != HashRecord(enc[1]) {
		t.Fatalf("%+v %v %v", recs, head, err)
	}
	if _, _, _, err := Chain(head, []Record{{Run: "run_a", Kind: NoticeRec, Body: json.RawMessage(`"` + strings.Repeat("x", MaxRecordBytes) + `"`)}}); !IsKind(err, Invalid) {
		t.Fatalf("oversized: %v", err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(testRecord().Encode())
	f.Add([]byte(`{"at":"2026-01-02T03:04:05.006Z","body":{},"kind":"x","prev":"","run":"r","seq":1,"v":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(b)
		if err == nil && !bytes.Equal(r.Encode(), b) {
			t.Fatalf("%q decodes and re-encodes to %q", b, r.Encode())
		}
	})
}

func TestIDs(t *testing.T) {
	zero := bytes.NewReader(make([]byte, 64))
	a, err := NewID(RunPrefix, testTime, zero)
	b, _ := NewID(RunPrefix, testTime.Add(time.Second), zero)
	if err != nil || !ValidID(RunPrefix, a) || a >= b {
		t.Fatalf("%q %q %v", a, b, err)
	}
	for _, s := range []string{"", "run_", "run_../../etc/passwd", "conv_" + a[4:], a + "ZZ", "run_" + strings.Repeat("a", 99)} {
		if ValidID(RunPrefix, s) {
			t.Errorf("%q is valid", s)
		}
	}
	if DeriveID("x_", "a", "bc") == DeriveID("x_", "ab", "c") {
		t.Error("parts run together")
	}
	if _, err := NewID(RunPrefix, testTime, bytes.NewReader(nil)); err == nil {
		t.Error("no randomness is no error")
	}
}

func TestErrorKinds(t *testing.T) {
	inner := E("stores.Get", Corrupt, nil, "bad")
	outer := &Error{Op: "engine", Err: inner}
	if KindOf(outer) != Corrupt || !IsKind(outer, Corrupt) || IsKind(nil, Internal) {
		t.Errorf("kind is %v", KindOf(outer))
	}
	if got := outer.Error(); got != "engine: internal: stores.Get: bad" {
		t.Errorf("got %q", got)
	}
}
