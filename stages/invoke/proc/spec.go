package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Spec says what to run and how.
type Spec struct {
	Path      string   // absolute, or looked up on the PATH of Env
	Args      []string // without the program's name
	Dir       string
	Env       []string
	Confine   bool
	Write     []string      // folders and files that stay writable when confined
	KillGrace time.Duration // from terminate to kill; 0 = 500 ms
	Marker    string        // KEY=VALUE put into the environment of the whole tree
	Report    string        // file for the Report of the end; "" = none
	Shared    bool          // what it creates is for the person's folders and has the modes of the person's umask
	Umask     int           // of the program; Start fills it in
}

const defaultGrace = 500 * time.Millisecond

// What led to the end of a tree.
const (
	EndedItself     = "itself"
	EndedStop       = "stop"
	EndedKill       = "kill"
	EndedHost       = "host gone"
	EndedSupervisor = "supervisor gone"
)

// Exit is how a program ended. Code is -1 when a signal ended it.
type Exit struct {
	Code        int    `json:"code"`
	Signal      string `json:"signal,omitempty"`
	Ended       string `json:"ended"`            // one of the Ended constants
	Descendants int    `json:"descendants"`      // processes beside the program that had to be ended
	Confined    string `json:"confined"`         // "landlock abi 7", or "none: " and why
	Failed      string `json:"failed,omitempty"` // the program could not be started
	Missing     bool   `json:"missing,omitempty"`
	Unreported  string `json:"unreported,omitempty"` // why there is no report file
}

// Supervisor names of the command line; they are no commands for people.
const (
	shimArg    = "__shim"
	confineArg = "__confine"
)

// Main runs the supervisor if args ask for it. Every binary that starts
// processes through this package calls it first.
func Main(args []string) (code int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case shimArg:
		return shimMain(), true
	case confineArg:
		return confineMain(), true
	}
	return 0, false
}

// allowed are the variables of the host that a child may see. GORACE only has a
// meaning for programs built to find races, as those of the tests are.
var allowed = []string{"GORACE", "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "SHELL", "TMPDIR", "TEMP", "TMP",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY",
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOTOOLCHAIN", "CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "NODE_PATH", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV",
	"SYSTEMROOT", "SystemRoot", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "WINDIR",
	"WITAN_INSIDE"}

// Env is the environment of a child: what is allowed of the host's, and extra on top.
func Env(extra map[string]string) []string {
	var out []string
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if _, ok := extra[k]; ok {
			continue
		}
		if slices.Contains(allowed, k) || strings.HasPrefix(k, "LC_") || strings.HasPrefix(k, "XDG_") {
			out = append(out, kv)
		}
	}
	keys := make([]string, 0, len(extra))
	for k := range extra {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		out = append(out, k+"="+extra[k])
	}
	return out
}

// Below reports whether path is folder, or in it, as both are written.
func Below(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
