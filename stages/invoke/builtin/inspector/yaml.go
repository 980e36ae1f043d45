package inspector

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	yamlError  = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '([^']+)'`)
)

// yamlPlace corrects the line of a YAML error. The library counts the lines of
// its grammar's errors from 0, leaves the first line and unknown anchors out,
// and gives the start of the block where one of its lines is indented wrongly.
func yamlPlace(src []byte, err error) (line int, text string) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return 1, err.Error()
	}
	line, _ = strconv.Atoi(m[1])
	text = m[2]
	expected := strings.HasPrefix(text, "did not find expected")
	if expected {
		line++
	}
	if a := yamlAnchor.FindStringSubmatch(text); a != nil {
		if at := regexp.MustCompile(`(?:^|[\s\[,{])\*` + regexp.QuoteMeta(a[1]) + `\b`).FindIndex(src); at != nil {
			line = lineAt(src, at[1]-1)
		}
	}
	if expected && !strings.Contains(text, "',' or") || strings.Contains(text, "violates indentation") {
		line = firstFailing(src, text)
	}
	return min(max(line, 1), lineAt(src, len(bytes.TrimRight(src, "\n")))), text
}

// firstFailing returns the line with which the text begins to fail this way:
// what follows it cannot repair it, and what stands before it does not fail so.
func firstFailing(src []byte, text string) int {
	lines := bytes.SplitAfter(src, []byte{'\n'})
	ends := make([]int, len(lines))
	for i, n := 0, 0; i < len(lines); i++ {
		n += len(lines[i])
		ends[i] = n
	}
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		dec := yaml.NewDecoder(bytes.NewReader(src[:ends[i]]))
		for {
			var n yaml.Node
			err := dec.Decode(&n)
			if err != nil {
				return !errors.Is(err, io.EOF) && strings.HasSuffix(err.Error(), text)
			}
		}
	})
}
