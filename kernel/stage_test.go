package kernel_test

import (
	"context"
	"errors"
	"testing"

	"witan/kernel"
)

// step is a stage that passes a number on.
type step[In, Out any] struct {
	spec kernel.Spec
	run  func(In) (Out, error)
}

func (s step[In, Out]) Spec() kernel.Spec                                       { return s.spec }
func (s step[In, Out]) Run(_ context.Context, _ kernel.Env, in In) (Out, error) { return s.run(in) }

type num struct {
	N int `json:"n"`
}

type text struct {
	S string `json:"s"`
}

func TestThenComposesAndIsAsWeakAsItsWeakerPart(t *testing.T) {
	one := step[num, text]{kernel.Spec{ID: "a/one", Version: 2, Class: kernel.Pure}, func(n num) (text, error) {
		if n.N < 0 {
			return text{}, errors.New("negative")
		}
		return text{string(rune('a' + n.N))}, nil
	}}
	two := step[text, num]{kernel.Spec{ID: "b/two", Version: 3, Class: kernel.Once}, func(s text) (num, error) { return num{len(s.S)}, nil }}
	c := kernel.Then[num, text, num](one, two)
	if got, err := c.Run(context.Background(), kernel.Env{}, num{2}); err != nil || got.N != 1 {
		t.Fatalf("%v %v", got, err)
	}
	if _, err := c.Run(context.Background(), kernel.Env{}, num{-1}); err == nil {
		t.Fatal("the first stage's error is lost")
	}
	if s := c.Spec(); s.ID != "a/one+b/two" || s.Class != kernel.Once {
		t.Fatalf("%+v", s)
	}
}

func TestErasedStageIsStrict(t *testing.T) {
	n := kernel.Erase[num, num](step[num, num]{kernel.Spec{ID: "a/x"}, func(n num) (num, error) { return num{n.N + 1}, nil }})
	out, err := n.RunJSON(context.Background(), kernel.Env{}, []byte(`{"n":1}`))
	if err != nil || string(out) != `{"n":2}` {
		t.Fatalf("%s %v", out, err)
	}
	for _, bad := range []string{`{"n":1,"m":2}`, `{"n":"x"}`, `{"n":1,"n":2}`, `[]`, ``} {
		if _, err := n.RunJSON(context.Background(), kernel.Env{}, []byte(bad)); !kernel.IsKind(err, kernel.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRegistryIsAValue(t *testing.T) {
	node := func(id string) kernel.Node {
		return kernel.Erase[num, num](step[num, num]{kernel.Spec{ID: id}, nil})
	}
	var r kernel.Registry
	r1 := r.With(node("a/one"))
	r2 := r1.With(node("b/two"))
	if _, ok := r1.Lookup("b/two"); ok {
		t.Fatal("adding to one registry changed another")
	}
	if s := r2.Specs(); len(s) != 2 || s[0].ID != "a/one" {
		t.Fatalf("%v", s)
	}
	for _, id := range []string{"a/one", "noslash", "A/b", ""} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was registered", id)
				}
			}()
			r2.With(node(id))
		}()
	}
}
