package kernel

import (
	"errors"
	"fmt"
	"strings"
)

// Kind classifies an error by what a caller can do about it. The list is
// closed and append-only: numbers are never reused, texts are stable.
type Kind uint8

const (
	Internal    Kind = iota // a bug, or an error nobody classified
	Invalid                 // the input is wrong; repeating it will not help
	NotFound                // no such thing
	Exists                  // the thing, or its key, is already taken
	Conflict                // somebody else moved the head, or answered first
	Corrupt                 // stored bytes do not match their hash
	NoSpace                 // the disk is full or nearly so
	ReadOnly                // the data directory cannot be written
	Locked                  // another host owns the data directory
	Timeout                 // a bounded wait ran out
	Cancelled               // the caller or the person stopped it
	Interrupted             // the host went away in the middle
	Unavailable             // the other side is gone; may come back
	Newer                   // data or peer of a newer, incompatible version
	Unsupported             // not in this version, or not on this system
)

var kindNames = [...]string{"internal", "invalid", "not found", "exists", "conflict", "corrupt",
	"no space", "read-only", "locked", "timeout", "cancelled", "interrupted", "unavailable", "newer", "unsupported"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Error is the one error type of the product. Op names the operation
// ("stores/ledger.Append"); Next, if set, is the next step for a person.
// Policy reads Kind only.
type Error struct {
	Op    string
	Kind  Kind
	Run   RunID
	Stage string
	What  string // one clause in plain words, lower case, without a full stop
	Next  string // the next step, if there is one
	Err   error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	if e.What != "" {
		b.WriteString(e.What)
	} else {
		b.WriteString(e.Kind.String())
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is matches on the fields that target sets, so that a test can assert meaning
// ("any Corrupt error") and not text.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	if !ok {
		return false
	}
	return t.Kind == e.Kind &&
		(t.Op == "" || t.Op == e.Op) &&
		(t.Run == "" || t.Run == e.Run) &&
		(t.Stage == "" || t.Stage == e.Stage)
}

// E builds an Error; what may hold fmt verbs, and %w is not among them: pass
// the cause as err.
func E(op string, kind Kind, err error, what string, args ...any) *Error {
	if len(args) > 0 {
		what = fmt.Sprintf(what, args...)
	}
	return &Error{Op: op, Kind: kind, Err: err, What: what}
}

// WithNext sets the next step and returns e.
func (e *Error) WithNext(next string, args ...any) *Error {
	if len(args) > 0 {
		next = fmt.Sprintf(next, args...)
	}
	e.Next = next
	return e
}

// KindOf returns the kind of the outermost classified error in err's chain;
// Internal when there is none.
func KindOf(err error) Kind {
	var e *Error
	for errors.As(err, &e) {
		if e.Kind != Internal {
			return e.Kind
		}
		err = e.Err
	}
	return Internal
}

// IsKind reports whether err is classified as k.
func IsKind(err error, k Kind) bool { return err != nil && KindOf(err) == k }
