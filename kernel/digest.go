package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Digest is a SHA-256. The zero value means "none".
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// Sum names a pack: the plain SHA-256 of its bytes, so that anybody can check
// it with sha256sum.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// SumDomain hashes b for a use other than naming a pack. The domain keeps a
// hash of one use from being valid for another.
func SumDomain(domain string, parts ...[]byte) Digest {
	h := sha256.New()
	h.Write([]byte("witan/" + domain + "\n"))
	for _, p := range parts {
		h.Write(p)
	}
	var d Digest
	h.Sum(d[:0])
	return d
}

func (d Digest) IsZero() bool { return d == Digest{} }

// String returns "sha256:" and 64 lower-case hex digits; "" for none.
func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return digestPrefix + hex.EncodeToString(d[:])
}

// ParseDigest is strict: exactly the form String prints, and nothing else.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	h, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(h) != 2*len(d) || strings.ToLower(h) != h {
		return Digest{}, E("kernel.ParseDigest", Invalid, nil, "%q is not a digest", clip(s, 80)).
			WithNext("write it as sha256: and 64 hex digits")
	}
	if _, err := hex.Decode(d[:], []byte(h)); err != nil || d.IsZero() {
		return Digest{}, E("kernel.ParseDigest", Invalid, nil, "%q is not a digest", clip(s, 80)).
			WithNext("write it as sha256: and 64 hex digits")
	}
	return d, nil
}

// MarshalText gives "" for none, so that omitzero and omitempty behave.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText accepts "" as none and is otherwise as strict as ParseDigest.
func (d *Digest) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*d = Digest{}
		return nil
	}
	p, err := ParseDigest(string(b))
	if err == nil {
		*d = p
	}
	return err
}

// clip shortens s to n bytes for an error text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
