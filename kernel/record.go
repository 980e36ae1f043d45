package kernel

import (
	"bytes"
	"encoding/json"
	"time"
)

// RecordKind names what a record says. The words are those of the NDJSON
// stream; kinds are append-only.
type RecordKind string

const (
	RunCreated      RecordKind = "run.created"
	RunResumed      RecordKind = "run.resumed"     // resume or retry reopened an ended run
	RunInterrupted  RecordKind = "run.interrupted" // the host that drove the run is gone
	RunFinished     RecordKind = "run.finished"
	StopRequested   RecordKind = "stop.requested"
	SnapshotFrozen  RecordKind = "snapshot.frozen"
	PhaseStarted    RecordKind = "phase.started"
	PhaseFinished   RecordKind = "phase.finished"
	AttemptQueued   RecordKind = "attempt.queued"
	AttemptStarted  RecordKind = "attempt.started"
	AttemptFinished RecordKind = "attempt.finished"
	StageStarted    RecordKind = "stage.started"
	StageFinished   RecordKind = "stage.finished"
	StageFailed     RecordKind = "stage.failed"
	DeliverySent    RecordKind = "delivery.sent" // intent: written before the prompt leaves
	ProcessStarted  RecordKind = "process.started"
	PermissionRec   RecordKind = "permission"
	ReceiptRec      RecordKind = "receipt"
	ReceiptRejected RecordKind = "receipt.rejected"
	FindingRec      RecordKind = "finding"
	EvidenceRec     RecordKind = "evidence"
	ArtifactRec     RecordKind = "artifact"
	VerifyRec       RecordKind = "verify"
	MessageRec      RecordKind = "message"
	CommitRec       RecordKind = "commit"
	NoticeRec       RecordKind = "notice"
	UsageRec        RecordKind = "usage"
	AdoptionRec     RecordKind = "adoption"
	GateOpened      RecordKind = "gate.opened"
	GateDecided     RecordKind = "gate.decided"
	GateUsed        RecordKind = "gate.used" // an attempt got the answer
	GateRevoked     RecordKind = "gate.revoked"
	PlanAgreed      RecordKind = "plan.agreed"
	BudgetTripped   RecordKind = "budget.tripped" // counted in flight
	RecordVersion              = 1
	MaxRecordBytes             = 128 << 10 // canonical bytes of one record; larger content goes to a pack
)

// Record is one link of a run's chain. Seq starts at 1 and has no holes. At is
// UTC with millisecond precision and is never used for order.
type Record struct {
	V       int
	Run     RunID
	Seq     uint64
	At      time.Time
	Kind    RecordKind
	Stage   string    // empty where no stage is meant
	Attempt AttemptID // empty for the run itself
	Body    json.RawMessage
	Prev    Digest // hash of the record before; zero for the first
}

// recordJSON is the canonical form; fields in the order of their keys.
type recordJSON struct {
	At      string          `json:"at"`
	Attempt AttemptID       `json:"attempt,omitempty"`
	Body    json.RawMessage `json:"body"`
	Kind    RecordKind      `json:"kind"`
	Prev    Digest          `json:"prev"`
	Run     RunID           `json:"run"`
	Seq     uint64          `json:"seq"`
	Stage   string          `json:"stage,omitempty"`
	V       int             `json:"v"`
}

const recordTime = "2006-01-02T15:04:05.000Z"

// Encode returns the canonical bytes of r. Body must be canonical JSON.
func (r Record) Encode() []byte {
	out := make([]byte, 0, len(r.Body)+320)
	out = append(out, `{"at":"`...)
	out = r.At.UTC().AppendFormat(out, recordTime)
	out = append(out, '"')
	if r.Attempt != "" {
		out = AppendString(append(out, `,"attempt":`...), string(r.Attempt))
	}
	out = append(out, `,"body":`...)
	if len(r.Body) == 0 {
		out = append(out, "{}"...)
	} else {
		out = append(out, r.Body...)
	}
	out = AppendString(append(out, `,"kind":`...), string(r.Kind))
	out = AppendString(append(out, `,"prev":`...), r.Prev.String())
	out = AppendString(append(out, `,"run":`...), string(r.Run))
	out = appendUint(append(out, `,"seq":`...), r.Seq)
	if r.Stage != "" {
		out = AppendString(append(out, `,"stage":`...), r.Stage)
	}
	out = appendUint(append(out, `,"v":`...), uint64(r.V))
	return append(out, '}')
}

// HashRecord is the chain hash of a record's canonical bytes. The bytes hold
// the previous hash, so the chain is H(prev ‖ record).
func HashRecord(canonical []byte) Digest { return SumDomain("record/1", canonical) }

// DecodeRecord accepts only what Encode could have written: whatever decodes
// re-encodes to the same bytes.
func DecodeRecord(b []byte) (Record, error) {
	const op = "kernel.DecodeRecord"
	if len(b) > MaxRecordBytes {
		return Record{}, E(op, Invalid, nil, "record of %d bytes is over the limit", len(b))
	}
	var j recordJSON
	if err := DecodeStrict(b, &j); err != nil {
		return Record{}, err
	}
	at, err := time.Parse(recordTime, j.At)
	if err != nil {
		return Record{}, E(op, Invalid, nil, "bad time")
	}
	if j.V > RecordVersion {
		return Record{}, E(op, Newer, nil, "record of version %d", j.V).WithNext("use a newer witan")
	}
	r := Record{V: j.V, Run: j.Run, Seq: j.Seq, At: at, Kind: j.Kind, Stage: j.Stage, Attempt: j.Attempt, Body: j.Body, Prev: j.Prev}
	if r.V < 1 || r.Seq < 1 || r.Kind == "" || !bytes.Equal(r.Encode(), b) {
		return Record{}, E(op, Invalid, nil, "record is not in canonical form")
	}
	return r, nil
}

func appendUint(out []byte, u uint64) []byte {
	if u >= 10 {
		out = appendUint(out, u/10)
	}
	return append(out, byte('0'+u%10))
}

// Head is the end of a run's chain: number of records and hash of the last.
type Head struct {
	Seq  uint64
	Hash Digest
}

// Chain numbers and links recs behind head and returns them with the encoded
// bytes and the new head. It fills V, Seq and Prev.
func Chain(head Head, recs []Record) ([]Record, [][]byte, Head, error) {
	out, enc := make([]Record, len(recs)), make([][]byte, len(recs))
	for i, r := range recs {
		r.V, r.Seq, r.Prev = RecordVersion, head.Seq+1, head.Hash
		r.At = r.At.UTC().Truncate(time.Millisecond)
		if len(r.Body) == 0 {
			r.Body = json.RawMessage("{}")
		}
		b := r.Encode()
		if len(b) > MaxRecordBytes {
			return nil, nil, head, E("kernel.Chain", Invalid, nil, "record %s of %d bytes is over the limit", r.Kind, len(b))
		}
		out[i], enc[i], head = r, b, Head{r.Seq, HashRecord(b)}
	}
	return out, enc, head, nil
}
