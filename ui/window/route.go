package window

import (
	"fmt"
	"strings"
)

// Page is what the middle of the window shows.
type Page int

// The pages.
const (
	PageConversation Page = iota
	PageWelcome
	PageSettings
	PageAgents
)

// Tab is a page of the inspector.
type Tab int

// The tabs, in order.
const (
	TabRun Tab = iota
	TabContext
	TabFindings
	TabFiles
)

// Route is a place in the window.
type Route struct {
	Page         Page
	Conversation string // "" on the page of conversations: a new one
	Tab          Tab
	Inspect      bool // the inspector was asked for
}

var tabNames = []string{"run", "context", "findings", "files"}

// ParseRoute reads a route as the command line has it.
func ParseRoute(s string) (Route, error) {
	switch s {
	case "welcome":
		return Route{Page: PageWelcome}, nil
	case "settings":
		return Route{Page: PageSettings}, nil
	case "agents":
		return Route{Page: PageAgents}, nil
	}
	parts := strings.Split(s, "/")
	if parts[0] == "conversation" && len(parts) >= 2 && len(parts) <= 3 && parts[1] != "" {
		r := Route{Conversation: parts[1]}
		if len(parts) == 2 {
			return r, nil
		}
		for i, name := range tabNames {
			if parts[2] == name {
				r.Tab, r.Inspect = Tab(i), true
				return r, nil
			}
		}
	}
	return Route{}, fmt.Errorf("%q is no route: use welcome, settings, agents, conversation/ID or conversation/ID/TAB with TAB one of %s", s, strings.Join(tabNames, ", "))
}

// String is the route as ParseRoute reads it.
func (r Route) String() string {
	switch {
	case r.Page == PageWelcome:
		return "welcome"
	case r.Page == PageSettings:
		return "settings"
	case r.Page == PageAgents:
		return "agents"
	case r.Inspect:
		return "conversation/" + r.Conversation + "/" + tabNames[r.Tab]
	}
	return "conversation/" + r.Conversation
}
