package session

import (
	"context"
	"encoding/json"
	"errors"

	"witan/ui/model"
)

// errEnough ends a call that has given what was needed.
var errEnough = errors.New("enough")

// Load reads a state once, as a window would have it a moment after it showed the
// conversation; "" is none. Nothing is followed afterwards.
func Load(ctx context.Context, src model.Source, home, conv string) (*model.State, error) {
	lists, err := src.Lists(ctx)
	if err != nil {
		return nil, err
	}
	st := (&model.State{Home: home}).With(lists)
	if conv == "" {
		return st, nil
	}
	var first json.RawMessage
	err = src.Attach(ctx, conv, func(raw json.RawMessage) error {
		first = append(first, raw...)
		return errEnough
	})
	if first == nil {
		if err == nil {
			err = errors.New("the host gave no snapshot")
		}
		return nil, err
	}
	if st, _, err = st.Raw(first); err != nil {
		return nil, err
	}
	for d, err := range details(ctx, src, first) {
		if err != nil {
			return nil, err
		}
		st = st.With(d)
	}
	return st, nil
}
