package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

const codeInternal = -32603

// Error is a JSON-RPC error of the other side. Code is 0 when it was no number;
// a code that is a word is in Text.
type Error struct {
	Code    int             `json:"code"`
	Text    string          `json:"-"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	if e.Text != "" {
		return fmt.Sprintf("%s (%s)", e.Message, e.Text)
	}
	return fmt.Sprintf("%s (%d)", e.Message, e.Code)
}

// NotFound is the answer to a method that a Handler does not have.
func NotFound(method string) *Error {
	return &Error{Code: -32601, Message: "method not found: " + method}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Encode writes v as one line.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// answer is the response to a request. What cannot be encoded is an error too:
// the other side waits for something.
func answer(id json.RawMessage, res any, err error) ([]byte, error) {
	out := map[string]any{"jsonrpc": "2.0", "id": id}
	var e *Error
	switch {
	case errors.As(err, &e):
		out["error"] = e
	case err != nil:
		out["error"] = &Error{Code: codeInternal, Message: err.Error()}
	default:
		out["result"] = res
	}
	return Encode(out)
}

// result decodes a response. In the wild an error is a text, its code a word, or
// its message an object.
func result(m message) (json.RawMessage, error) {
	if len(m.Error) == 0 || string(m.Error) == "null" {
		return m.Result, nil
	}
	var text string
	if json.Unmarshal(m.Error, &text) == nil {
		return nil, &Error{Message: text}
	}
	var loose struct {
		Code    any             `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(m.Error, &loose) != nil {
		return nil, &Error{Message: "unreadable error", Data: m.Error}
	}
	e := &Error{Message: string(loose.Message), Data: loose.Data}
	if json.Unmarshal(loose.Message, &text) == nil {
		e.Message = text
	}
	switch v := loose.Code.(type) {
	case float64:
		if math.Abs(v) <= math.MaxInt32 {
			e.Code = int(v)
		}
	case string:
		var err error
		if e.Code, err = strconv.Atoi(v); err != nil {
			e.Code, e.Text = 0, v
		}
	}
	return nil, e
}
