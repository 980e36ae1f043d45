package kernel

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// NoOptions is the schema of a stage without options.
var NoOptions = json.RawMessage(`{"type":"object","additionalProperties":false}`)

// Schema returns the JSON schema of T as the decoder reads it: what has no
// omitempty is listed as required, and nothing else is allowed.
func Schema[T any]() json.RawMessage {
	b, err := Canonical(schemaOf(reflect.TypeFor[T](), 0))
	if err != nil {
		panic(err) // the types are our own
	}
	return b
}

// Fingerprint is the hash that is recorded before a prompt is sent.
func Fingerprint(prompt []byte) Digest { return SumDomain("delivery/1", prompt) }

func schemaOf(t reflect.Type, depth int) map[string]any {
	raw := reflect.TypeFor[json.RawMessage]()
	text := reflect.TypeFor[encoding.TextMarshaler]()
	switch {
	case depth > 8 || t == raw:
		return map[string]any{}
	case t.Kind() != reflect.Pointer && t.Implements(text):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{schemaOf(t.Elem(), depth+1), map[string]any{"type": "null"}}}
	case reflect.Struct:
		return structSchema(t, depth)
	case reflect.Slice:
		return map[string]any{"type": []any{"array", "null"}, "items": schemaOf(t.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), depth+1)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}

func structSchema(t reflect.Type, depth int) map[string]any {
	props, required := map[string]any{}, []any{}
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		props[name] = schemaOf(t.Field(i).Type, depth+1)
		if !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}
