package kerneltest

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"witan/kernel"
)

// Mem implements every store port in memory, for tests of what is above the
// stores. It passes the same conformance suites as the real stores.
type Mem struct {
	mu    sync.Mutex
	runs  map[kernel.RunID]*memRun // mu guards all below
	keys  map[string]kernel.RunID
	packs map[kernel.Digest]memPack
	stats map[string][]byte
	convs map[kernel.ConversationID]*memConv
	chunk map[kernel.AttemptID][]byte
}

type memRun struct {
	recs [][]byte
	head kernel.Head
	sum  kernel.RunSummary
}

type memPack struct {
	kind string
	b    []byte
}

type memConv struct {
	c      kernel.Conversation
	msgs   map[kernel.MessageID]kernel.Message
	next   uint64
	claims map[string]uint64
	sess   map[kernel.AgentID]kernel.Session
	queue  memQueue
}

// NewMem returns empty stores.
func NewMem() *Mem {
	return &Mem{runs: map[kernel.RunID]*memRun{}, keys: map[string]kernel.RunID{}, packs: map[kernel.Digest]memPack{},
		stats: map[string][]byte{}, convs: map[kernel.ConversationID]*memConv{}, chunk: map[kernel.AttemptID][]byte{}}
}

func notFound(op, what string, args ...any) error {
	return kernel.E("kerneltest."+op, kernel.NotFound, nil, what, args...)
}

// Append implements kernel.Ledger.
func (m *Mem) Append(ctx context.Context, b kernel.Batch) (kernel.Head, []kernel.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[b.Run]
	if r == nil {
		r = &memRun{}
	}
	if r.head != b.Expect {
		return r.head, nil, kernel.E("kerneltest.Append", kernel.Conflict, nil, "head of %s moved", b.Run)
	}
	if owner, ok := m.keys[b.Key]; b.Key != "" && ok && owner != b.Run {
		return r.head, nil, kernel.E("kerneltest.Append", kernel.Exists, nil, "key is taken by %s", owner)
	}
	recs, enc, head, err := kernel.Chain(r.head, b.Records)
	if err != nil {
		return r.head, nil, err
	}
	r.recs, r.head, r.sum = append(r.recs, enc...), head, b.Summary
	m.runs[b.Run] = r
	if b.Key != "" {
		m.keys[b.Key] = b.Run
	}
	return head, recs, nil
}

// Read implements kernel.Ledger.
func (m *Mem) Read(ctx context.Context, run kernel.RunID, from uint64) iter.Seq2[kernel.Record, error] {
	return func(yield func(kernel.Record, error) bool) {
		m.mu.Lock()
		r := m.runs[run]
		var encs [][]byte
		if r != nil {
			encs = slices.Clone(r.recs)
		}
		m.mu.Unlock()
		if r == nil {
			yield(kernel.Record{}, notFound("Read", "no run %s", run))
			return
		}
		for _, b := range encs {
			rec, err := kernel.DecodeRecord(b)
			if err == nil && rec.Seq < from {
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Head implements kernel.Ledger.
func (m *Mem) Head(ctx context.Context, run kernel.RunID) (kernel.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		return r.head, nil
	}
	return kernel.Head{}, notFound("Head", "no run %s", run)
}

// Summaries implements kernel.Ledger.
func (m *Mem) Summaries(ctx context.Context) iter.Seq2[kernel.RunSummary, error] {
	m.mu.Lock()
	var out []kernel.RunSummary
	for _, r := range m.runs {
		out = append(out, r.sum)
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b kernel.RunSummary) int { return strings.Compare(string(b.Run), string(a.Run)) })
	return values(out)
}

func values[T any](in []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range in {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// Summary implements kernel.Ledger.
func (m *Mem) Summary(ctx context.Context, run kernel.RunID) (kernel.RunSummary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		return r.sum, nil
	}
	return kernel.RunSummary{}, notFound("Summary", "no run %s", run)
}

// ByKey implements kernel.Ledger.
func (m *Mem) ByKey(ctx context.Context, key string) (kernel.RunID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.keys[key]; ok {
		return r, nil
	}
	return "", notFound("ByKey", "no run has this key")
}

// Witness implements kernel.Ledger.
func (m *Mem) Witness(ctx context.Context) error { return nil }

// Put implements kernel.Packs.
func (m *Mem) Put(ctx context.Context, kind string, b []byte) (kernel.Digest, error) {
	d := kernel.Sum(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.packs[d]; !ok {
		m.packs[d] = memPack{kind, bytes.Clone(b)}
	}
	return d, nil
}

// Get implements kernel.Packs.
func (m *Mem) Get(ctx context.Context, d kernel.Digest) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.packs[d]
	if !ok {
		return nil, notFound("Get", "no pack %s", d)
	}
	if kernel.Sum(p.b) != d {
		return nil, kernel.E("kerneltest.Get", kernel.Corrupt, nil, "pack %s does not match its hash", d)
	}
	return bytes.Clone(p.b), nil
}

// Flip changes one bit of a stored pack, as a bad disk would.
func (m *Mem) Flip(d kernel.Digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, ok := m.packs[d]; ok && len(p.b) > 0 {
		p.b[len(p.b)/2] ^= 1
	}
}

// Stat implements kernel.Packs.
func (m *Mem) Stat(ctx context.Context, d kernel.Digest) (kernel.PackInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.packs[d]
	if !ok {
		return kernel.PackInfo{}, notFound("Stat", "no pack %s", d)
	}
	return kernel.PackInfo{Hash: d, Kind: p.kind, Bytes: int64(len(p.b)), Stored: int64(len(p.b))}, nil
}

// List implements kernel.Packs.
func (m *Mem) List(ctx context.Context) iter.Seq2[kernel.PackInfo, error] {
	m.mu.Lock()
	var out []kernel.PackInfo
	for d, p := range m.packs {
		out = append(out, kernel.PackInfo{Hash: d, Kind: p.kind, Bytes: int64(len(p.b)), Stored: int64(len(p.b))})
	}
	m.mu.Unlock()
	slices.SortFunc(out, func(a, b kernel.PackInfo) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return values(out)
}

// Begin implements kernel.Packs.
func (m *Mem) Begin(ctx context.Context) (kernel.PackWriter, error) {
	return &memWriter{m: m, new: map[kernel.Digest]memPack{}}, nil
}

type memWriter struct {
	m    *Mem
	mu   sync.Mutex
	new  map[kernel.Digest]memPack // guarded by mu
	done bool
}

func (w *memWriter) Add(kind string, b []byte) (kernel.Digest, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return kernel.Digest{}, kernel.E("kerneltest.Add", kernel.Invalid, nil, "writer is closed")
	}
	d := kernel.Sum(b)
	w.new[d] = memPack{kind, bytes.Clone(b)}
	return d, nil
}

func (w *memWriter) AddReader(kind string, r io.Reader, size int64) (kernel.Digest, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return kernel.Digest{}, 0, err
	}
	if size >= 0 && int64(len(b)) != size {
		return kernel.Digest{}, 0, kernel.E("kerneltest.AddReader", kernel.Invalid, nil, "size is %d, not %d", len(b), size)
	}
	d, err := w.Add(kind, b)
	return d, int64(len(b)), err
}

func (w *memWriter) Has(d kernel.Digest) bool {
	w.mu.Lock()
	_, ok := w.new[d]
	w.mu.Unlock()
	if ok {
		return true
	}
	_, err := w.m.Stat(context.Background(), d)
	return err == nil
}

func (w *memWriter) Seal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return kernel.E("kerneltest.Seal", kernel.Invalid, nil, "writer is closed")
	}
	w.done = true
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	for d, p := range w.new {
		if _, ok := w.m.packs[d]; !ok {
			w.m.packs[d] = p
		}
	}
	return nil
}

func (w *memWriter) Abort() {
	w.mu.Lock()
	w.done = true
	w.mu.Unlock()
}

// LoadStat implements kernel.StatCache.
func (m *Mem) LoadStat(ctx context.Context, workspace string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.stats[workspace]
	if !ok {
		return nil, notFound("LoadStat", "nothing cached")
	}
	return bytes.Clone(b), nil
}

// SaveStat implements kernel.StatCache.
func (m *Mem) SaveStat(ctx context.Context, workspace string, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats[workspace] = bytes.Clone(b)
	return nil
}
