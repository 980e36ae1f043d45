package kernel

import "encoding/json"

// The objects below are what stages take and give. Each is stored as a pack of
// canonical JSON; later objects name earlier ones by digest, so a run can be
// walked back from its commit to the task. Content (texts, files) is always a
// pack of its own. None holds a time, a path of an executable or a native
// session id.

// ObjectVersion is the version of all objects of this file.
const ObjectVersion = 1

// Task is what a person asked, with the history that goes with it: the input of freeze.
type Task struct {
	Version      int            `json:"version"`
	Conversation ConversationID `json:"conversation"`
	Text         string         `json:"text"` // at most 32,000 characters
	Workspace    string         `json:"workspace"`
	History      []HistoryEntry `json:"history"`
	Attachments  []Attachment   `json:"attachments"`
}

// HistoryEntry is one earlier message of the conversation.
type HistoryEntry struct {
	Message MessageID `json:"message"`
	Role    string    `json:"role"`
	Agent   AgentID   `json:"agent,omitempty"`
	TurnSeq uint64    `json:"turn_seq"`
	Text    Digest    `json:"text"`
	Status  string    `json:"status,omitempty"`
}

// Snapshot is the frozen context all members of a run start from: the output of freeze.
type Snapshot struct {
	Version      int            `json:"version"`
	Task         Digest         `json:"task"`
	Text         string         `json:"text"`
	History      []HistoryEntry `json:"history"`
	Attachments  []Attachment   `json:"attachments"`
	Instructions Digest         `json:"instructions,omitzero"` // AGENTS.md of the workspace
	Workspace    Workspace      `json:"workspace"`
}

// Workspace is the state of the folder. Kind is "git" (Commit, Branch and the
// files that differ from it), "folder" (Tree) or "none".
type Workspace struct {
	Kind    string      `json:"kind"`
	Path    string      `json:"path"`
	Commit  string      `json:"commit,omitempty"` // empty in a repository without commits
	Branch  string      `json:"branch,omitempty"` // empty when detached
	Sub     string      `json:"sub,omitempty"`    // path of the workspace below the repository's top, "" at the top
	Dirty   []DirtyFile `json:"dirty,omitempty"`  // sorted by path
	Tree    Digest      `json:"tree,omitzero"`
	Files   int         `json:"files"`
	Bytes   int64       `json:"bytes"`
	Skipped []Skipped   `json:"skipped,omitempty"` // unreadable, special or too large
}

// DirtyFile is a file that differs from the commit. Hash is zero when it was
// deleted. Mode is the permission bits in octal, or "link".
type DirtyFile struct {
	Path   string `json:"path"`
	Status string `json:"status"` // modified, added, deleted, untracked, renamed
	Hash   Digest `json:"hash,omitzero"`
	Mode   string `json:"mode,omitempty"`
	Bytes  int64  `json:"bytes"`
}

// Skipped is a file that the snapshot does not hold, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Turn is one agent's place in a phase: the input of deliver. The driver makes
// it from the folded run.
type Turn struct {
	Version   int             `json:"version"`
	Run       RunID           `json:"run"`
	Plan      string          `json:"plan"`
	Phase     string          `json:"phase"`
	Round     int             `json:"round"`
	Agent     AgentID         `json:"agent"`
	Role      string          `json:"role"`
	Write     bool            `json:"write"`
	Members   []AgentID       `json:"members"`
	Snapshot  Digest          `json:"snapshot"`
	TurnSeq   uint64          `json:"turn_seq"`
	Slot      int             `json:"slot"`            // position in the phase, from 0
	Seen      uint64          `json:"seen,omitempty"`  // watermark of a continuing session
	Continue  bool            `json:"continue"`        // the agent's native session goes on
	Rebuilt   bool            `json:"rebuilt"`         // it had one, which is gone
	Extra     json.RawMessage `json:"extra,omitempty"` // further fields of the turn block, by plan
	OutputDir string          `json:"output_dir,omitempty"`
	Candidate Digest          `json:"candidate,omitzero"` // the content the turn starts from; zero = the snapshot's
	Mode      string          `json:"mode,omitempty"`     // of a writer: ask, auto, full
	InPlace   bool            `json:"in_place,omitempty"` // a writer works in the person's folder, with consent
	Given     []Given         `json:"given,omitempty"`    // what others said in this run, as far as the phase allows
	Repair    string          `json:"repair,omitempty"`   // what is asked for once more when it lacks: receipt, decision
}

// Given is something said in this run that a turn is told: an agent's answer, or
// the person's.
type Given struct {
	Agent   AgentID   `json:"agent,omitempty"` // empty: the person
	Phase   string    `json:"phase"`
	Round   int       `json:"round"`
	Item    string    `json:"item,omitempty"`
	Message MessageID `json:"message,omitempty"`
	Text    Digest    `json:"text,omitzero"`
	Said    string    `json:"said,omitempty"` // instead of Text
}

// Delivery is the exact text an agent is given: the output of deliver.
type Delivery struct {
	Version     int    `json:"version"`
	Turn        Digest `json:"turn"`
	Prompt      Digest `json:"prompt"`      // the bytes sent
	Fingerprint Digest `json:"fingerprint"` // SumDomain("delivery/1", prompt)
	Bytes       int64  `json:"bytes"`
	Session     string `json:"session"` // new, resume, rebuilt
	Complete    bool   `json:"complete"`
}

// Reply is what came back: the output of invoke.
type Reply struct {
	Version  int          `json:"version"`
	Turn     Digest       `json:"turn"`
	Delivery Digest       `json:"delivery"`
	Text     Digest       `json:"text,omitzero"` // visible text and receipt as the agent wrote it
	Stop     string       `json:"stop"`          // the protocol's stop reason
	Tools    []ToolCall   `json:"tools"`         // at most MaxReplyTools, the rest counted
	MoreTool int          `json:"more_tools"`
	Usage    Usage        `json:"usage"`
	Outcomes []Outcome    `json:"outcomes"` // findings and evidence the agent reported by tool
	Receipt  ReceiptBytes `json:"receipt,omitempty"`
	Changed  []Change     `json:"changed,omitempty"` // what really changed on disk during the turn

	Candidate Digest       `json:"candidate,omitzero"` // content a writing turn left; zero for a read-only one
	Files     []OutputFile `json:"files,omitempty"`    // what the turn left in its output folder
}

// OutputFile is a file of a turn's output folder. Path is relative to it.
type OutputFile struct {
	Path  string `json:"path"`
	Hash  Digest `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// Candidate is content that a writer made: the files that differ from the
// snapshot, all others being as frozen. Its digest names the content, so equal
// content of one snapshot is one candidate.
type Candidate struct {
	Version  int             `json:"version"`
	Snapshot Digest          `json:"snapshot"`
	Files    []CandidateFile `json:"files"` // sorted by path
}

// CandidateFile is one file that differs. Paths are relative to the workspace,
// in the form of tree.EncodePath. Base is its content in the snapshot, zero when
// it was not there; Hash the new content, zero when it is deleted. Modes are
// permission bits in octal, or "link".
type CandidateFile struct {
	Path     string `json:"path"`
	What     string `json:"what"` // added, modified, deleted
	Base     Digest `json:"base,omitzero"`
	BaseMode string `json:"base_mode,omitempty"`
	Hash     Digest `json:"hash,omitzero"`
	Mode     string `json:"mode,omitempty"`
	Bytes    int64  `json:"bytes"`
}

// ReceiptBytes is a receipt that came through the receipt tool, canonical.
type ReceiptBytes = json.RawMessage

// MaxReplyTools bounds the tools listed in a Reply.
const MaxReplyTools = 256

// ToolCall is one tool the agent ran. Title is text of the agent, at most 400 bytes.
type ToolCall struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Title  string `json:"title"`
	Status string `json:"status"`
}

// Change is a path that differs after the turn.
type Change struct {
	Path string `json:"path"`
	What string `json:"what"` // added, modified, deleted
}

// Outcome is a finding, a piece of evidence or an artifact. Fields that its
// type does not have are empty.
type Outcome struct {
	Type     string      `json:"type"` // finding, evidence, artifact
	ID       OutcomeID   `json:"id"`
	Agent    AgentID     `json:"agent,omitempty"`
	Severity string      `json:"severity,omitempty"` // high, medium, low, info
	Stance   string      `json:"stance,omitempty"`   // support, contradict
	Title    string      `json:"title,omitempty"`
	Detail   string      `json:"detail,omitempty"`
	Path     string      `json:"path,omitempty"`
	Line     int         `json:"line,omitempty"`
	Evidence []OutcomeID `json:"evidence,omitempty"`
	Kind     string      `json:"kind,omitempty"`  // of evidence or artifact: excerpt, command, file, …
	Level    string      `json:"level,omitempty"` // declared, observed, reproduced, human-accepted
	Summary  string      `json:"summary,omitempty"`
	Hash     Digest      `json:"hash,omitzero"` // pack with the content
}

// Claim is a reply with its receipt read: the output of receipt.
type Claim struct {
	Version  int             `json:"version"`
	Turn     Digest          `json:"turn"`
	Reply    Digest          `json:"reply"`
	Source   string          `json:"source"` // mcp, text, synthetic, none
	Receipt  json.RawMessage `json:"receipt,omitempty"`
	Text     Digest          `json:"text,omitzero"` // visible text without the receipt
	Claims   []ClaimText     `json:"claims"`
	Outcomes []Outcome       `json:"outcomes"`
	Dropped  []string        `json:"dropped,omitempty"` // codes of what could not be read (lenient)
	Session  string          `json:"session"`
}

// ClaimText is one claim of a receipt.
type ClaimText struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	Exit    *int   `json:"exit,omitempty"`
	Path    string `json:"path,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

// Verdict says what holds of a claim: the output of verify, the input of
// commit. Scope is "attempt", or "run" for the accepted result of the run, in
// which case Parts are the Results of its attempts.
type Verdict struct {
	Version   int            `json:"version"`
	Scope     string         `json:"scope"`
	Turn      Digest         `json:"turn,omitzero"`
	Claim     Digest         `json:"claim,omitzero"`
	Text      Digest         `json:"text,omitzero"`
	Status    string         `json:"status"` // completed, partial, stopped, stalled, interrupted
	Results   []ClaimVerdict `json:"results"`
	Outcomes  []Outcome      `json:"outcomes"`
	Parts     []Digest       `json:"parts,omitempty"`
	Snapshot  Digest         `json:"snapshot,omitzero"`  // scope run
	Candidate Digest         `json:"candidate,omitzero"` // scope run: the accepted content; zero = no files
	Run       RunID          `json:"run,omitempty"`      // scope run
}

// ClaimVerdict is the verdict on one claim.
type ClaimVerdict struct {
	Claim    string      `json:"claim"`
	Source   string      `json:"source"`  // agent, command
	Verdict  string      `json:"verdict"` // verified, unverified, contradicted, invalid
	Reason   string      `json:"reason,omitempty"`
	Evidence []OutcomeID `json:"evidence"`
}

// Result is what commit did.
type Result struct {
	Version  int            `json:"version"`
	Scope    string         `json:"scope"`
	Verdict  Digest         `json:"verdict"`
	Message  *Message       `json:"message,omitempty"` // without time
	Outcomes []Outcome      `json:"outcomes"`
	Results  []ClaimVerdict `json:"results"`
	Commit   string         `json:"commit,omitempty"` // scope run: id, and where it went
	Target   string         `json:"target,omitempty"`
	Content  Digest         `json:"content,omitzero"`
}
