package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"witan/kernel"
	"witan/kernel/marker"
	"witan/kernel/receipts"
)

// lacks says what an answer lacks of what its turn must give; "" when nothing.
func lacks(t kernel.Turn, r kernel.Reply, text string) string {
	strict := t.Repair == "receipt"
	raw := []byte(r.Receipt)
	if inText, ok := marker.Receipt(text); len(raw) == 0 || ok && strict {
		if !ok {
			if t.Repair == "" {
				return ""
			}
			return "there is no receipt"
		}
		if _, err := same(t, r.Receipt, inText, strict); err != nil {
			return err.Error()
		}
		raw = []byte(inText)
	}
	c, _, err := receipts.Parse(raw, receipts.ExpectOf(t), strict)
	if err != nil {
		return err.Error()
	}
	if t.Repair != "decision" {
		return ""
	}
	var body struct {
		Decision json.RawMessage `json:"decision"`
	}
	if err := json.Unmarshal(c, &body); err != nil || len(body.Decision) == 0 {
		return "there is no decision in the receipt"
	}
	return ""
}

// same compares the receipt of the tool with the one in the text.
func same(t kernel.Turn, tool kernel.ReceiptBytes, text string, strict bool) (json.RawMessage, error) {
	b, _, err := receipts.Parse([]byte(text), receipts.ExpectOf(t), strict)
	if err != nil || len(tool) == 0 {
		return b, err
	}
	a, _, err := receipts.Parse(tool, receipts.ExpectOf(t), strict)
	if err == nil && string(a) != string(b) {
		err = &receipts.Error{Code: receipts.Mismatch, What: "the receipt in the text differs from the one of the tool"}
	}
	return a, err
}

// repair asks the same session once more for what the answer lacks, and joins
// both answers: the text of the first, the receipt of the second, whose prose is
// left out.
func (s stage) repair(ctx context.Context, env kernel.Env, agent kernel.Invoker, req kernel.InvokeRequest, first kernel.Reply, take func(*kernel.Reply)) (kernel.Reply, error) {
	text, err := textOf(ctx, env.Packs, first)
	if err != nil {
		return first, err
	}
	why := lacks(req.Turn, first, text)
	if why == "" {
		return first, nil
	}
	env.Emit(kernel.Event{Type: "notice", Code: "receipt_repair", Text: "asked once more: " + why})
	next, err := repairRequest(ctx, env, req, why)
	if err != nil {
		return first, err
	}
	env.Emit(kernel.Event{Type: "receipt-only"})
	second, err := agent.Invoke(ctx, env, next)
	if err != nil {
		return again(err, first)
	}
	take(&second)
	return join(ctx, env, first, second, text)
}

// repairRequest is the delivery of the second question, stored like any other.
func repairRequest(ctx context.Context, env kernel.Env, req kernel.InvokeRequest, why string) (kernel.InvokeRequest, error) {
	ask := "Your answer is kept, but its receipt cannot be used: " + strings.NewReplacer("\n", " ", "<", "‹").Replace(why) +
		".\nReturn the receipt alone, complete and correct, as the answer before asked for it. This is asked once.\n"
	block := string(req.Prompt)
	if i := strings.LastIndex(block, marker.TurnOpen); i >= 0 {
		ask += "\n" + block[i:]
	}
	prompt := []byte(ask)
	h, err := env.Packs.Put(ctx, "prompt", prompt)
	if err != nil {
		return req, err
	}
	req.Delivery.Prompt, req.Delivery.Fingerprint, req.Delivery.Bytes, req.Delivery.Session = h, kernel.Fingerprint(prompt), int64(len(prompt)), "resume"
	req.DeliveryHash, err = kernel.PutObject(ctx, env.Packs, "deliver.out", req.Delivery)
	req.Prompt, req.Turn.Continue, req.Turn.Rebuilt = prompt, true, false
	return req, err
}

// again is how the second question failed: what the first gave is kept. An agent
// without a session to go on in cannot be asked, and is judged by what it gave.
func again(err error, first kernel.Reply) (kernel.Reply, error) {
	var f *kernel.Failure
	if !errors.As(err, &f) {
		return first, err
	}
	if f.Class == kernel.ClassSession {
		return first, nil
	}
	f.Partial = first
	return first, f
}

func join(ctx context.Context, env kernel.Env, first, second kernel.Reply, text string) (kernel.Reply, error) {
	more, err := textOf(ctx, env.Packs, second)
	if err != nil {
		return first, err
	}
	out := first
	out.Stop, out.Usage = second.Stop, first.Usage.Add(second.Usage)
	out.Tools = append(out.Tools, second.Tools...)
	if n := len(out.Tools) - kernel.MaxReplyTools; n > 0 {
		out.Tools, out.MoreTool = out.Tools[:kernel.MaxReplyTools], out.MoreTool+n
	}
	out.MoreTool += second.MoreTool
	out.Outcomes = append(out.Outcomes, second.Outcomes...)
	out.Changed = append(out.Changed, second.Changed...)
	if len(second.Receipt) > 0 {
		out.Receipt = second.Receipt
	}
	if body, ok := marker.Receipt(more); ok {
		if len(second.Receipt) == 0 {
			out.Receipt = nil
		}
		text = marker.Visible(text) + "\n" + marker.ReceiptOpen + body + marker.ReceiptClose + "\n"
	} else if len(second.Receipt) > 0 {
		text = marker.Visible(text)
	}
	out.Text, err = env.Packs.Put(ctx, "text", []byte(text))
	return out, err
}

func textOf(ctx context.Context, p kernel.Packs, r kernel.Reply) (string, error) {
	if r.Text.IsZero() {
		return "", nil
	}
	b, err := p.Get(ctx, r.Text)
	return string(b), err
}
