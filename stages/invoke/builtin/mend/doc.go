// Package mend makes the few corrections that need no judgement: Go files as
// gofmt writes them, a relative link of a Markdown file whose target stands
// under the same name at exactly one other place, and commas before a closing
// bracket of a JSON file that parses without them.
//
// # Guarantees
//
//   - Find changes nothing. Apply changes the files it is given and no other,
//     and none whose content is another than Find saw.
//   - A changed file keeps its mode and its line ends. A file with mixed line
//     ends, with a merge conflict, generated, fetched, or ignored by
//     .witanignore is left alone; so are the examples of tests, unless the
//     caller names them.
//   - Mending what is mended finds nothing.
//
// # What a crash may leave behind
//
// A file changed or not, never half; and a file called .tmp-witan-mend-…
// beside it, which the next Apply removes.
package mend
