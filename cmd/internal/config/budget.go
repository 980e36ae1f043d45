package config

import (
	"maps"
	"slices"
	"time"

	"witan/kernel"
)

// RunBudget is the [budget] table: a number, or { limit = N, soft = true }, a
// limit. elapsed is a duration.
func (c *Config) RunBudget() (map[string]kernel.Limit, error) {
	if len(c.Budget) == 0 {
		return nil, nil
	}
	out := map[string]kernel.Limit{}
	for _, name := range slices.Sorted(maps.Keys(c.Budget)) {
		l, ok := limit(name, c.Budget[name])
		if !ok {
			next := "write a whole number, or { limit = N, soft = true }"
			if name == "elapsed" {
				next = `write a duration such as "30m"`
			}
			return nil, kernel.E("config.Budget", kernel.Invalid, nil, "budget %s is no limit", name).WithNext("%s", next)
		}
		out[name] = l
	}
	return out, kernel.CheckBudget(out)
}

func limit(name string, v any) (l kernel.Limit, ok bool) {
	if m, is := v.(map[string]any); is {
		for k := range m {
			if k != "limit" && k != "soft" {
				return l, false
			}
		}
		if s, is := m["soft"]; is {
			if l.Soft, ok = s.(bool); !ok {
				return l, false
			}
		}
		v = m["limit"]
	}
	if name == "elapsed" {
		text, is := v.(string)
		d, err := time.ParseDuration(text)
		l.Limit = d.Milliseconds()
		return l, is && err == nil && d > 0
	}
	l.Limit, ok = v.(int64)
	return l, ok
}
