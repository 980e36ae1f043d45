package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"witan/kernel/plaintext"
)

// Message returns a printer for the rows of `witan show`.
func Message(w io.Writer) func(json.RawMessage) error {
	r := &Run{Out: w}
	return func(raw json.RawMessage) error {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return err
		}
		head := l.Agent
		if l.Role != "agent" {
			head = l.Role
		}
		if l.Status != "completed" {
			head += " (" + l.Status + ")"
		}
		r.rule(head)
		_, err := fmt.Fprintf(w, "%s\n\n", strings.TrimRight(plaintext.Clean(l.Text), "\n"))
		return err
	}
}
