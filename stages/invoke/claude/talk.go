package claude

import (
	"strings"

	"witan/stages/invoke/turn"
)

// talk makes one text of messages that arrive in pieces and again as a whole.
// Between the texts of two messages it puts an empty line; a message that goes on
// where the output limit cut the one before follows directly.
type talk struct {
	id    string // of the message under way
	said  string // the message of the last text
	any   bool   // there was text
	open  bool   // the last line has no end
	cut   bool   // the last message ended at the output limit
	piece strings.Builder
}

// begin is the start of a message in pieces.
func (t *talk) begin(id string) {
	t.id = id
	t.piece.Reset()
}

// block is the start of the message's next part.
func (t *talk) block() { t.piece.Reset() }

// delta takes a piece of text.
func (t *talk) delta(r *turn.Recorder, s string) {
	t.piece.WriteString(s)
	t.say(r, t.id, s)
}

// whole takes a whole text: what of it did not come in pieces.
func (t *talk) whole(r *turn.Recorder, id, s string) {
	if t.piece.Len() == 0 || id != t.id {
		t.say(r, id, s)
		return
	}
	if rest, ok := strings.CutPrefix(s, t.piece.String()); ok {
		t.say(r, id, rest)
	}
	t.piece.Reset()
}

// rest takes the text of a result, for answers that came in no other way.
func (t *talk) rest(r *turn.Recorder, s string) {
	if !t.any {
		t.say(r, "", s)
	}
}

func (t *talk) say(r *turn.Recorder, id, s string) {
	if s == "" {
		return
	}
	if t.any && id != t.said && t.open && !t.cut {
		r.Text("\n\n")
	}
	t.any, t.said, t.cut = true, id, false
	t.open = !strings.HasSuffix(s, "\n")
	r.Text(s)
}
