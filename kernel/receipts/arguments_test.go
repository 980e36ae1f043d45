package receipts_test

import (
	"errors"
	"strings"
	"testing"

	"witan/kernel/receipts"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	const finding = `"severity":"low","title":"t","detail":"d"`
	for _, tt := range []struct{ tool, in, out, code, pointer string }{
		{"context", ` {"id" : "msg_\u0031"} `, `{"id":"msg_1"}`, "", ""},
		{"ask", `{"question":"a","options":["b","c"]}`, `{"options":["b","c"],"question":"a"}`, "", ""},
		{"finding", `{` + finding + `,"line":7,"evidence":[]}`, `{"detail":"d","evidence":[],"line":7,"severity":"low","title":"t"}`, "", ""},
		{"context", "", "", receipts.BadArguments, "/id"},
		{"context", "null", "", receipts.BadArguments, ""},
		{"context", `{"id":"a","id":"b"}`, "", receipts.BadArguments, ""},
		{"context", "{\"id\":\"\xff\"}", "", receipts.BadArguments, ""},
		{"context", `{"id":"a"} {}`, "", receipts.BadArguments, ""},
		{"context", `{"id":"a","x/y":1}`, "", receipts.BadArguments, "/x~1y"},
		{"context", `{"id":"` + strings.Repeat("é", 801) + `"}`, "", receipts.BadArguments, "/id"},
		{"ask", `{"question":"a\u0000"}`, "", receipts.BadArguments, "/question"},
		{"ask", `{"question":"a","options":["b",1]}`, "", receipts.BadArguments, "/options/1"},
		{"ask", `{"question":"` + strings.Repeat("x", receipts.MaxBytes) + `"}`, "", receipts.ArgumentsTooLarge, ""},
		{"finding", `{` + finding + `,"stance":"maybe"}`, "", receipts.BadArguments, "/stance"},
		{"finding", `{` + finding + `,"claim":"c"}`, "", receipts.BadArguments, "/claim"},
		{"finding", `{"severity":"low","title":"t","detail":"AKIAIOSFODNN7EXAMPLE"}`, "", receipts.BadArguments, "/detail"},
		{"receipt", `{}`, "", receipts.BadArguments, ""},
	} {
		out, err := receipts.Arguments(tt.tool, []byte(tt.in))
		var e *receipts.Error
		switch {
		case tt.code == "" && (err != nil || string(out) != tt.out):
			t.Errorf("%s %.60s: %s, %v", tt.tool, tt.in, out, err)
		case tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code || e.Pointer != tt.pointer || out != nil || strings.Contains(err.Error(), "AKIA")):
			t.Errorf("%s %.60s: %s, %v", tt.tool, tt.in, out, err)
		}
		if tt.code == "" {
			if again, err := receipts.Arguments(tt.tool, out); err != nil || string(again) != string(out) {
				t.Errorf("%s: read again it is %s, %v", out, again, err)
			}
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("ask", []byte(`{"question":"a","options":["b"]}`))
	f.Add("finding", []byte(`{"severity":"low","title":"t","detail":"d","line":1}`))
	f.Add("context", []byte(`{"id":"\ud800"}`))
	f.Fuzz(func(t *testing.T, tool string, raw []byte) {
		out, err := receipts.Arguments(tool, raw)
		if err != nil {
			return
		}
		if again, err := receipts.Arguments(tool, out); err != nil || string(again) != string(out) {
			t.Errorf("%s becomes %s, then %s, %v", raw, out, again, err)
		}
	})
}
