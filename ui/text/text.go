// Package text has every word that the window shows, in English and in simplified
// Chinese. A language is one value of Strings: what a language lacks does not
// compile or fails a test, never shows a key to a person.
//
// Names of agents, texts of messages and codes of a language-neutral contract
// (hashes, paths, commands) are not translated.
package text

import (
	"fmt"
	"strings"
)

// Count is a phrase about a number, in the forms a language has for it.
type Count struct{ One, Many string }

// Of fills in the number.
func (c Count) Of(n int) string {
	if n == 1 {
		return fmt.Sprintf(c.One, n)
	}
	return fmt.Sprintf(c.Many, n)
}

// Languages are the tags that For knows, the default first.
var Languages = []string{"en", "zh-CN"}

// For returns the words of the language that a tag of a system's locale names,
// e.g. "zh_CN.UTF-8"; English for any other.
func For(tag string) *Strings {
	if strings.HasPrefix(strings.ToLower(tag), "zh") {
		return &chinese
	}
	return &english
}

// Word looks up a word by a code of the contract; a code that has none is shown
// as it is, with spaces.
func Word(m map[string]string, code string) string {
	if w, ok := m[code]; ok {
		return w
	}
	return strings.ReplaceAll(strings.ReplaceAll(code, "_", " "), "-", " ")
}

// Strings are the words of one language.
type Strings struct {
	Tag string

	// The sidebar.
	Search, NewConversation, Agents, Settings, NoFolder, Archived string
	MarkNow, MarkGate, MarkNew, Yesterday, ShortcutSearch         string
	ConversationNamed                                             string // %s

	// The header and the composer.
	Stop, Send, Queue, Attach, Title, Rename, WaitingForYou string
	MessageCouncil, MessageOne, MessageMany, MessageGroup   string
	AgentsChosen, GatesWait, More, QueuedMessages           Count
	ChooseAgents, ChoosePlan, Hold, Release, Remove         string
	ToggleSidebar, ToggleInspector, CloseSheet              string
	PhaseOf                                                 string // %s phase, %d of %d

	// The conversation.
	You, System, JumpToLatest, Copy, Regenerate, Collapse, Expand string
	Running, Queued, Try, Tokens, TokensThousand                  string
	SameSnapshot, AgreedBy, FinalizerIs, Empty, Loading, Older    string
	Independent, ToolCalls, Attachments                           Count
	CommittedTo, EndedAs, Unreachable                             string

	// Gates.
	ExpiresWithRun, DecidedBy, OnKeyboard, OpenGate, ReplyHere string

	// The inspector.
	TabRun, TabContext, TabFindings, TabFiles                    string
	Pipeline, Graph, Time, Budget, AttemptEach, AgreedAt         string
	BudgetTokens, BudgetTurns, BudgetLedger, BudgetCost, Unknown string
	OfLimit, Records, ChainVerified                              string
	StageIn, StageOut, StageTook, NotYet, NoRun, NoPlan          string
	Attempts                                                     Count
	Snapshot, DeliveredTo, SessionIs, Task, NothingDelivered     string
	NoFindings, NoFiles, Accept, Reject, Reopen, Verification    string
	EvidenceIs, Adopted, Claims, Artifacts, ProjectChanges       string
	Process, Open, Agreeing                                      string

	// The palette.
	PaletteHint, PaletteNone                                                string
	ActNew, ActSettings, ActAgents, ActStop, ActRetry, ActResume, ActRename string
	ActArchive, ActTheme, ActLanguage, ActSidebar, ActInspector, ActLatest  string
	ActRunTab, ActContextTab, ActFindingsTab, ActFilesTab, ActWelcome       string
	ActFocus, ActAnswer, ActPlan, ActAccept, ActReject, ActOpen             string

	// Settings and welcome.
	Appearance, Theme, Language, ThemeSystem, ThemeLight, ThemeDark    string
	Motion, MotionReduced, MotionFull, Defaults, Plan, Permission      string
	Welcome, WhoIsHere, NothingSent, StartConversation, ChooseFolder   string
	SampleCouncil, Check, NextStep, BuiltIn, Folder, ChooseFolderLabel string
	Retry, NoAgents, SampleTask, Failed, Dismiss                       string

	// Words for codes of the contract.
	Plans, Phases, PhaseRules, Stages, Statuses, Severities, Permissions map[string]string
	GateKinds, Options, Readiness, Roles, Stances, Verdicts, Adoptions   map[string]string
	Levels, Sessions, Modes                                              map[string]string

	// Times.
	JustNow, Seconds, Minutes, Hours, Days string // %d
	Weekdays                               [7]string
}
