package work

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"witan/kernel"
)

// MaxEvidence bounds the content of one piece of evidence, in bytes.
const MaxEvidence = 64 << 10

// Excerpt is evidence for a place in a file: the lines around it, and the hash
// of the whole file, so that anybody can see whether the file still is that one.
// mask hides what must not be repeated; nil repeats the lines as they are.
func Excerpt(agent kernel.AgentID, name string, line int, content []byte, mask func(string) string) (kernel.Outcome, []byte) {
	const around = 2
	var b bytes.Buffer
	fmt.Fprintf(&b, "path: %s\nline: %d\nfile: %s\n\n", Show(name), line, kernel.Sum(content))
	n := 0
	for l := range bytes.Lines(content) {
		if n++; n < line-around {
			continue
		}
		if n > line+around {
			break
		}
		text := strings.ToValidUTF8(strings.TrimRight(string(l), "\r\n"), "\uFFFD")
		if mask != nil {
			text = mask(text)
		}
		sign := ' '
		if n == line {
			sign = '>'
		}
		fmt.Fprintf(&b, "%c %5d  %s\n", sign, n, Clip(Show(text), 400))
	}
	return Evidence(agent, "excerpt", "observed", fmt.Sprintf("%s:%d as it was read", name, line), b.Bytes())
}

// Evidence names content as evidence. Content beyond MaxEvidence loses its
// middle.
func Evidence(agent kernel.AgentID, kind, level, summary string, content []byte) (kernel.Outcome, []byte) {
	content = HeadTail(content, MaxEvidence)
	hash := kernel.Sum(content)
	return kernel.Outcome{
		Type: "evidence", ID: kernel.OutcomeID(kernel.DeriveID(kernel.EvidencePrefix, string(agent), kind, summary, hash.String())),
		Agent: agent, Kind: kind, Level: level, Summary: Clip(Show(summary), 800), Hash: hash,
	}, content
}

// Finding builds a finding with its identity, which is its place and its title.
func Finding(agent kernel.AgentID, severity, title, detail, name string, line int, evidence ...kernel.OutcomeID) kernel.Outcome {
	return kernel.Outcome{
		Type: "finding", ID: kernel.OutcomeID(kernel.DeriveID(kernel.FindingPrefix, string(agent), name, strconv.Itoa(line), title, detail)),
		Agent: agent, Severity: severity, Title: Clip(Show(title), 200), Detail: Clip(ShowLines(detail), 800),
		Path: name, Line: line, Evidence: evidence,
	}
}

// HeadTail keeps the first and last half of n bytes and says how much is
// missing between them.
func HeadTail(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	half := n/2 - 40
	head := strings.ToValidUTF8(string(b[:half]), "")
	tail := strings.ToValidUTF8(string(b[len(b)-half:]), "")
	return fmt.Appendf(nil, "%s\n… %d bytes left out …\n%s", head, len(b)-2*half, tail)
}
