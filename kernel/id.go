package kernel

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"
)

// Identifiers are short strings with a type prefix. A RunID or ConversationID
// sorts by time of creation; an AttemptID or MessageID is derived from its place in the run,
// so that doing the same work again names the same thing.
type (
	RunID          string
	ConversationID string
	AttemptID      string
	MessageID      string
	AgentID        string
	GateID         string
	OutcomeID      string
	EntryID        string
)

const (
	RunPrefix          = "run_"
	ConversationPrefix = "conv_"
	AttemptPrefix      = "atp_"
	MessagePrefix      = "msg_"
	GatePrefix         = "gate_"
	FindingPrefix      = "fnd_"
	EvidencePrefix     = "evd_"
	ArtifactPrefix     = "art_"
	CommitPrefix       = "cmt_"
	EntryPrefix        = "ent_"
)

// crockford is base32 without the letters people misread, in lower case.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID returns prefix + 48 bits of Unix milliseconds + 80 random bits read
// from random. It fails only when random does.
func NewID(prefix string, now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", E("kernel.NewID", Internal, err, "no randomness")
	}
	return prefix + crockford.EncodeToString(b[:]), nil
}

// DeriveID returns prefix + 100 bits of the hash of the parts: the same parts
// give the same id, and no two lists of parts collide by concatenation.
func DeriveID(prefix string, parts ...string) string {
	h := sha256.New()
	io.WriteString(h, "witan/id/1\n")
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s\n", len(p), p)
	}
	return prefix + crockford.EncodeToString(h.Sum(nil))[:20]
}

// ValidID reports whether s has the prefix and a well-formed tail. It is the
// check for ids that come from outside.
func ValidID(prefix, s string) bool {
	tail, ok := strings.CutPrefix(s, prefix)
	if !ok || len(tail) < 16 || len(tail) > 32 {
		return false
	}
	return strings.Trim(tail, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}
