// Package shell opens the window on a screen: it owns the system's window, gives
// its events to the content and draws a frame when there was input or the model
// changed, and at no other time. Where the program was built without what a window
// needs, Available is false and Run says so.
package shell

import "witan/ui/model"

// Options say what the window shows and where it keeps what a person chose.
type Options struct {
	Source model.Source
	Home   string // the person's home folder, shown as ~
	Folder string // where a new conversation works
	Route  string // what is shown first; "" is the newest conversation, or the welcome
	Prefs  Prefs
	Keep   func(Prefs) // called after the person chose something; may be nil
}

// Prefs are what a person chose. They are kept in a file of their own.
type Prefs struct {
	Theme  string            `json:"theme,omitempty"`
	Lang   string            `json:"lang,omitempty"`
	Width  int               `json:"width,omitempty"`
	Height int               `json:"height,omitempty"`
	Drafts map[string]string `json:"drafts,omitempty"`
}
