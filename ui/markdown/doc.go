// Package markdown turns the text of a message into blocks that can be laid out
// one by one: a flat list, where a block knows how deep it is in lists and quotes.
//
// Text of agents is not trusted: control sequences are taken out before parsing,
// no HTML is interpreted, and a block that is too large to be drawn at once is cut
// with the number of bytes that are missing. Nothing here fails: what is no
// Markdown is a paragraph.
package markdown

// Kind says what a block is.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	Code
	Table
	Rule
)

// Block is one piece of a message.
type Block struct {
	Kind   Kind
	Level  int    // of a heading, 1 to 6
	Depth  int    // how many lists it is in
	Quote  int    // how many quotes it is in
	Marker string // what stands before the first block of a list item: "•", "3."
	Task   Task   // of a list item
	Tight  bool   // it follows its predecessor without a gap
	Spans  []Span
	Lang   string    // of code
	Lines  [][]Token // of code
	Rows   [][]Cell  // of a table; the first is its head
	Cut    int       // bytes left out of a block that is too large
}

// Task is the state of a list item that can be ticked off.
type Task int

// The states of a task.
const (
	NoTask Task = iota
	Todo
	Done
)

// Span is a piece of text in one style.
type Span struct {
	Text                   string
	Strong, Emph, Code     bool
	Strike, Image, NewLine bool   // NewLine: a line break follows
	Link                   string // where it leads
}

// Align is the alignment of a column.
type Align int

// The alignments.
const (
	Left Align = iota
	Center
	Right
)

// Cell is a field of a table.
type Cell struct {
	Spans []Span
	Align Align
}

// Class says how a piece of code is coloured.
type Class int

// The classes of code.
const (
	Plain Class = iota
	Keyword
	String
	Number
	Comment
	Name
	Type
	Added
	Removed
	Hunk
)

// Token is a piece of a line of code.
type Token struct {
	Text  string
	Class Class
}

// Bounds of what is drawn of one block.
const (
	MaxSpanBytes = 64 << 10
	MaxCodeLines = 2000
	MaxCodeBytes = 256 << 10
	MaxRows      = 300
	MaxColumns   = 24
)

// Text is the text of a block as it is copied.
func (b Block) Text() string {
	var out []byte
	switch b.Kind {
	case Code:
		for _, l := range b.Lines {
			for _, t := range l {
				out = append(out, t.Text...)
			}
			out = append(out, '\n')
		}
	case Table:
		for _, r := range b.Rows {
			for i, c := range r {
				if i > 0 {
					out = append(out, '\t')
				}
				out = append(out, plain(c.Spans)...)
			}
			out = append(out, '\n')
		}
	default:
		out = append(out, plain(b.Spans)...)
	}
	return string(out)
}

func plain(spans []Span) string {
	var out []byte
	for _, s := range spans {
		out = append(out, s.Text...)
		if s.NewLine {
			out = append(out, '\n')
		}
	}
	return string(out)
}
