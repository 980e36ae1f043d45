package config

import (
	"reflect"
	"strconv"
	"strings"
)

// nearest is the known key closest to an unknown one, at the same depth.
func nearest(key []string) string {
	t := reflect.TypeFor[Config]()
	for i, k := range key {
		if t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		if t.Kind() != reflect.Struct {
			break
		}
		f, best, bestD := reflect.StructField{}, "", 1<<30
		for n := range t.NumField() {
			tag := t.Field(n).Tag.Get("toml")
			if d := distance(k, tag); d < bestD {
				f, best, bestD = t.Field(n), tag, d
			}
		}
		if bestD > 0 || i == len(key)-1 {
			return strings.Join(append(append([]string{}, key[:i]...), best), ".")
		}
		t = f.Type
	}
	return strings.Join(key[:len(key)-1], ".")
}

// Nearest returns the one of known that is closest to s.
func Nearest(s string, known []string) string {
	best, bestD := "", 1<<30
	for _, k := range known {
		if d := distance(s, k); d < bestD {
			best, bestD = k, d
		}
	}
	return best
}

// Near is Nearest where that is a likely slip of the pen: at least half of s
// agrees with it. Else it is empty.
func Near(s string, known []string) string {
	n := Nearest(s, known)
	if distance(s, n) > (len(s)+1)/2 {
		return ""
	}
	return n
}

// OneOf is the next step for a word that is none of known.
func OneOf(s string, known []string) string {
	next := "use one of " + strings.Join(known, ", ")
	if n := Near(s, known); n != "" {
		next = "did you mean " + strconv.Quote(n) + "? " + next
	}
	return next
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := prev
			if a[i-1] != b[j-1] {
				cost = 1 + min(prev, row[j], row[j-1])
			}
			prev, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
