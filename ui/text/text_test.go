package text_test

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"witan/ui/text"
)

var verb = regexp.MustCompile(`%[.\d]*[a-z]`)

// TestLanguagesSayTheSame compares every word of every language with English: it
// is there, and it takes the same values in the same order.
func TestLanguagesSayTheSame(t *testing.T) {
	t.Parallel()
	en := reflect.ValueOf(*text.For("en"))
	for _, tag := range text.Languages {
		other := reflect.ValueOf(*text.For(tag))
		if got := text.For(tag).Tag; got != tag {
			t.Fatalf("the words of %s say that they are %s", tag, got)
		}
		for i := range en.NumField() {
			same(t, tag+": "+en.Type().Field(i).Name, en.Field(i), other.Field(i))
		}
	}
}

func same(t *testing.T, name string, en, other reflect.Value) {
	t.Helper()
	switch en.Kind() {
	case reflect.String:
		if other.String() == "" {
			t.Errorf("%s is empty", name)
		}
		if a, b := verb.FindAllString(en.String(), -1), verb.FindAllString(other.String(), -1); !slices.Equal(a, b) {
			t.Errorf("%s takes %v, English %v", name, b, a)
		}
	case reflect.Struct:
		for i := range en.NumField() {
			same(t, name+"."+en.Type().Field(i).Name, en.Field(i), other.Field(i))
		}
	case reflect.Array:
		for i := range en.Len() {
			same(t, name, en.Index(i), other.Index(i))
		}
	case reflect.Map:
		if en.Len() != other.Len() {
			t.Errorf("%s has %d words, English %d", name, other.Len(), en.Len())
		}
		for _, k := range en.MapKeys() {
			if !other.MapIndex(k).IsValid() {
				t.Errorf("%s lacks %q", name, k)
				continue
			}
			same(t, name+"."+k.String(), en.MapIndex(k), other.MapIndex(k))
		}
	default:
		t.Fatalf("%s: this test does not know a %s", name, en.Kind())
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]string{"": "en", "C": "en", "de_DE.UTF-8": "en", "en": "en", "zh": "zh-CN", "zh_CN.UTF-8": "zh-CN", "ZH-Hans": "zh-CN"} {
		if got := text.For(tag).Tag; got != want {
			t.Errorf("For(%q) is %s, want %s", tag, got, want)
		}
	}
}

func TestWordOfAnUnknownCode(t *testing.T) {
	t.Parallel()
	if got := text.Word(text.For("en").Statuses, "some-new_state"); got != "some new state" {
		t.Errorf("got %q", got)
	}
	c := text.For("en").Attempts
	if c.Of(1) != "1 attempt" || c.Of(0) != "0 attempts" {
		t.Errorf("got %q and %q", c.Of(1), c.Of(0))
	}
}
