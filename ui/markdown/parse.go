package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"witan/kernel/plaintext"
)

var parser = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// Parse returns the blocks of a text.
func Parse(src string) []Block {
	b, _ := parse([]byte(plaintext.Clean(src)))
	return b
}

// maxSource is how much text is parsed as Markdown; what is longer is shown as
// paragraphs, because a parser's time for hostile input grows faster than it.
const maxSource = 2 << 20

// parse also returns where the last top-level block begins, 0 if there is but one.
func parse(src []byte) ([]Block, int) {
	if len(src) > maxSource {
		return raw(string(src)), 0
	}
	w := walker{src: src}
	doc := parser.Parse(text.NewReader(src))
	last := 0
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.NextSibling() == nil && n != doc.FirstChild() {
			last = start(n, src)
		}
		w.block(n, place{})
	}
	return w.out, last
}

// start is the beginning of the line on which a block begins; 0 if unknown.
func start(n ast.Node, src []byte) int {
	at := n.Pos()
	if at <= 0 || at > len(src) {
		return 0
	}
	for at > 0 && src[at-1] != '\n' {
		at--
	}
	return at
}

// raw shows a text line by line without interpreting it.
func raw(src string) []Block {
	var out []Block
	for len(src) > 0 && len(out) < MaxCodeLines {
		line, rest, _ := strings.Cut(src, "\n")
		out = append(out, cut(Block{Spans: []Span{{Text: line}}, Tight: len(out) > 0}))
		src = rest
	}
	if len(src) > 0 {
		out = append(out, Block{Cut: len(src)})
	}
	return out
}

// place is where in lists and quotes a block is.
type place struct {
	depth, quote int
	marker       string
	task         Task
	tight        bool
}

type walker struct {
	src []byte
	out []Block
}

// add adds a block. The marker goes to the first block of an item only.
func (w *walker) add(b Block, p *place) {
	b.Depth, b.Quote, b.Marker, b.Task, b.Tight = p.depth, p.quote, p.marker, p.task, p.tight
	p.marker, p.task = "", NoTask
	w.out = append(w.out, cut(b))
}

func (w *walker) block(n ast.Node, p place) { w.visit(n, &p) }

func (w *walker) visit(n ast.Node, p *place) {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		w.add(Block{Spans: w.spans(n, p)}, p)
	case *ast.Heading:
		w.add(Block{Kind: Heading, Level: n.Level, Spans: w.spans(n, p)}, p)
	case *ast.ThematicBreak:
		w.add(Block{Kind: Rule}, p)
	case *ast.FencedCodeBlock:
		lang := ""
		if l := n.Language(w.src); l != nil {
			lang = string(l)
		}
		w.code(lang, n, p)
	case *ast.CodeBlock:
		w.code("", n, p)
	case *ast.HTMLBlock:
		w.code("html", n, p)
	case *ast.Blockquote:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			w.block(c, place{depth: p.depth, quote: p.quote + 1})
		}
	case *ast.List:
		w.list(n, p)
	case *east.Table:
		w.table(n, p)
	default:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			w.visit(c, p)
		}
	}
}

func (w *walker) list(l *ast.List, p *place) {
	if p.depth > 12 { // deeper would leave no room for text
		p = &place{depth: p.depth - 1, quote: p.quote}
	}
	no := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		in := place{depth: p.depth + 1, quote: p.quote, marker: "•", tight: l.IsTight && (item != l.FirstChild() || p.depth > 0)}
		if l.IsOrdered() {
			in.marker = strconv.Itoa(no) + "."
			no++
		}
		if item.FirstChild() == nil {
			w.add(Block{}, &in)
		}
		for c := item.FirstChild(); c != nil; c = c.NextSibling() {
			w.visit(c, &in)
			in.tight = l.IsTight
		}
	}
}

func (w *walker) code(lang string, n ast.Node, p *place) {
	var src []byte
	lines := n.Lines()
	for i := range lines.Len() {
		s := lines.At(i)
		src = append(src, s.Value(w.src)...)
	}
	if h, ok := n.(*ast.HTMLBlock); ok && h.HasClosure() {
		src = append(src, h.ClosureLine.Value(w.src)...)
	}
	w.add(codeBlock(lang, string(src)), p)
}

func (w *walker) table(t *east.Table, p *place) {
	b := Block{Kind: Table}
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		if len(b.Rows) >= MaxRows {
			b.Cut += r.ChildCount()
			continue
		}
		var row []Cell
		for c := r.FirstChild(); c != nil && len(row) < MaxColumns; c = c.NextSibling() {
			cell := Cell{Spans: w.spans(c, p)}
			if tc, ok := c.(*east.TableCell); ok {
				cell.Align = map[east.Alignment]Align{east.AlignCenter: Center, east.AlignRight: Right}[tc.Alignment]
			}
			row = append(row, cell)
		}
		b.Rows = append(b.Rows, row)
	}
	w.add(b, p)
}

// spans collects the styled text below n.
func (w *walker) spans(n ast.Node, p *place) []Span {
	in := inline{src: w.src, place: p}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		in.walk(c, Span{})
	}
	return in.out
}

type inline struct {
	src   []byte
	place *place
	out   []Span
}

func (in *inline) add(s Span) {
	if k := len(in.out) - 1; k >= 0 && !in.out[k].NewLine {
		same := in.out[k]
		same.Text, same.NewLine = s.Text, s.NewLine
		if same == s {
			in.out[k].Text += s.Text
			in.out[k].NewLine = s.NewLine
			return
		}
	}
	in.out = append(in.out, s)
}

func (in *inline) walk(n ast.Node, s Span) {
	switch n := n.(type) {
	case *ast.Text:
		s.Text = string(n.Segment.Value(in.src))
		if n.SoftLineBreak() {
			s.Text += " "
		}
		s.NewLine = n.HardLineBreak()
		in.add(s)
		return
	case *ast.String:
		s.Text = string(n.Value)
		in.add(s)
		return
	case *ast.CodeSpan:
		s.Code = true
	case *ast.Emphasis:
		if n.Level >= 2 {
			s.Strong = true
		} else {
			s.Emph = true
		}
	case *east.Strikethrough:
		s.Strike = true
	case *ast.Link:
		s.Link = string(n.Destination)
	case *ast.Image:
		s.Image, s.Link = true, string(n.Destination)
	case *ast.AutoLink:
		s.Text, s.Link = string(n.Label(in.src)), string(n.URL(in.src))
		in.add(s)
		return
	case *east.TaskCheckBox:
		in.place.task = Todo
		if n.IsChecked {
			in.place.task = Done
		}
		return
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			s.Text = string(seg.Value(in.src))
			in.add(s)
		}
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		in.walk(c, s)
	}
}

// cut bounds the text of a block.
func cut(b Block) Block {
	n := 0
	for i, s := range b.Spans {
		if n+len(s.Text) > MaxSpanBytes {
			keep := strings.ToValidUTF8(s.Text[:MaxSpanBytes-n], "")
			for _, rest := range b.Spans[i:] {
				b.Cut += len(rest.Text)
			}
			b.Cut -= len(keep)
			b.Spans = append(b.Spans[:i:i], Span{Text: keep, Code: s.Code})
			break
		}
		n += len(s.Text)
	}
	return b
}
