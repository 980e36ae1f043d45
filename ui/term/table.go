package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints rows as aligned columns. Columns are JSON keys; a key that is an
// array is joined, a missing one is "-".
type Table struct {
	Out     io.Writer
	Columns []string
	rows    [][]string
}

// Line adds a row.
func (t *Table) Line(raw json.RawMessage) error {
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return err
	}
	row, said := make([]string, len(t.Columns)), false
	for i, c := range t.Columns {
		_, ok := m[c]
		row[i], said = cell(m[c]), said || ok
	}
	if !said {
		return nil // a row of another kind
	}
	t.rows = append(t.rows, row)
	return nil
}

// Flush prints the header and the rows, or one sentence when there are none.
func (t *Table) Flush(empty string) {
	if len(t.rows) == 0 {
		if empty != "" {
			fmt.Fprintln(t.Out, empty)
		}
		return
	}
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.Join(t.Columns, "\t")))
	for _, r := range t.rows {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	w.Flush()
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, cell(e))
		}
		return strings.Join(parts, ",")
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	s := oneLine(fmt.Sprint(v))
	if s == "" {
		return "-"
	}
	return cut(s, 200)
}
