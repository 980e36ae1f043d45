package markdown

import "witan/kernel/plaintext"

// Stream parses a text that grows. Only its last block is parsed again; the blocks
// before it are kept as they are. A text that does not continue the one before is
// parsed from its beginning.
type Stream struct {
	head   string  // the text that the kept blocks came from
	kept   []Block // of head
	parsed int     // bytes that were given to the parser in all
}

// Update returns the blocks of the whole text so far. The result is valid until
// the next call.
func (s *Stream) Update(text string) []Block {
	if len(text) < len(s.head) || text[:len(s.head)] != s.head {
		*s = Stream{parsed: s.parsed}
	}
	tail := plaintext.Clean(text[len(s.head):])
	s.parsed += len(tail)
	blocks, last := parse([]byte(tail))
	// The offset of the last block holds for the raw text only where cleaning
	// changed nothing.
	if last > 0 && last <= len(text)-len(s.head) && tail[:last] == text[len(s.head):len(s.head)+last] {
		head, _ := parse([]byte(tail[:last]))
		if len(head) < len(blocks) {
			s.kept = append(s.kept, head...)
			s.head = text[:len(s.head)+last]
			blocks = blocks[len(head):]
		}
	}
	return append(s.kept[:len(s.kept):len(s.kept)], blocks...)
}

// Parsed is how many bytes went through the parser, for tests of the cost.
func (s *Stream) Parsed() int { return s.parsed }

// Kept is how many blocks will not be parsed again while the text grows.
func (s *Stream) Kept() int { return len(s.kept) }
