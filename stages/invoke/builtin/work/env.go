package work

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Inside is the environment variable that marks everything the runner starts:
// a Witan started below it does not run the tests again.
const Inside = "WITAN_INSIDE"

// passed are the variables a command takes over as they are: where programs
// are, how text is written, and what Windows needs to start anything at all.
var passed = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GOROOT", "GOEXPERIMENT", "NVM_DIR", "VOLTA_HOME", "JAVA_HOME", "DEVELOPER_DIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "WINDIR", "PROGRAMFILES", "PROGRAMDATA", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"}

// Tools is the environment and the writable folders of a command that runs
// tools of the project's language.
type Tools struct {
	Env   []string // complete, sorted
	Write []string // folders it may write
}

// NewTools prepares folders below state. HOME and TMPDIR are private to the
// turn, so that a test that writes there touches nothing of the person's;
// tool chains are pointed to the person's own installation and caches of
// downloaded and compiled code, without which each turn would start cold.
func NewTools(state string) (Tools, error) {
	home, tmp := filepath.Join(state, "home"), filepath.Join(state, "tmp")
	for _, d := range []string{home, tmp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return Tools{}, err
		}
	}
	env := map[string]string{
		"HOME": home, "USERPROFILE": home, "TMPDIR": tmp, "TMP": tmp, "TEMP": tmp,
		"CI": "1", "NO_COLOR": "1", "FORCE_COLOR": "0", "TERM": "dumb", Inside: "1",
		"GOFLAGS": "-buildvcs=false", "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off", "GOENV": "off", "GOTMPDIR": tmp,
		"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8",
		"npm_config_offline": "true", "npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false",
		"npm_config_cache": filepath.Join(home, ".npm"), "CARGO_NET_OFFLINE": "true", "GIT_TERMINAL_PROMPT": "0",
	}
	for _, k := range passed {
		if v, ok := os.LookupEnv(k); ok {
			env[k] = v
		}
	}
	caches := personal(env)
	t := Tools{Write: append([]string{home, tmp}, caches...)}
	for k, v := range env {
		t.Env = append(t.Env, k+"="+v)
	}
	slices.Sort(t.Env)
	return t, nil
}

// personal points the tools to what the person has installed in the home
// folder, and returns the caches among it that tools must be able to write.
func personal(env map[string]string) []string {
	real, err := os.UserHomeDir()
	if err != nil {
		real = env["HOME"]
	}
	pick := func(name, fallback string) string {
		if v := os.Getenv(name); v != "" && filepath.IsAbs(v) {
			return v
		}
		return fallback
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(env["HOME"], ".cache")
	}
	gopath := pick("GOPATH", filepath.Join(real, "go"))
	env["GOPATH"] = gopath
	env["GOMODCACHE"] = pick("GOMODCACHE", filepath.Join(filepath.SplitList(gopath)[0], "pkg", "mod"))
	env["GOCACHE"] = pick("GOCACHE", filepath.Join(cache, "go-build"))
	for name, place := range map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv",
		"PYTHONUSERBASE": ".local", "GIT_CONFIG_GLOBAL": ".gitconfig"} {
		p := pick(name, filepath.Join(real, place))
		if _, err := os.Stat(p); err == nil {
			env[name] = p
		}
	}
	if os.MkdirAll(env["GOCACHE"], 0o700) != nil {
		env["GOCACHE"] = filepath.Join(env["HOME"], ".cache", "go-build")
		return nil
	}
	return []string{env["GOCACHE"]}
}

// gitEnviron is what git needs to read a repository: the person's own
// configuration says which folders are safe.
func gitEnviron() []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(passed, strings.ToUpper(name)) || name == "HOME" || name == "XDG_CONFIG_HOME" || name == "USERPROFILE" {
			env = append(env, kv)
		}
	}
	return append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "LC_ALL=C")
}

// Find looks a program up on PATH and returns its path, "" if it is missing.
func Find(name string) string {
	exts := []string{""}
	if runtime.GOOS == "windows" {
		exts = filepath.SplitList(strings.ToLower(os.Getenv("PATHEXT")))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, ext := range exts {
			p := filepath.Join(dir, name+ext)
			if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return p
			}
		}
	}
	return ""
}

// With returns env with one variable set, which replaces an earlier one.
func With(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	out := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, name+"=") })
	return append(out, kv)
}

// GoLacks reports whether the go command failed for want of something on this
// machine (a module that was not downloaded, a newer Go, a C compiler), which
// is not the project's fault.
func GoLacks(text string) bool {
	return slices.ContainsFunc([]string{"GOPROXY=off", "GOTOOLCHAIN=local", "dial tcp", "C compiler", `exec: "gcc"`,
		"build constraints exclude all Go files"}, func(m string) bool { return strings.Contains(text, m) })
}
