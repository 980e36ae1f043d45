package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

type use int

const (
	reads use = iota
	writes
	removes // or moves away
)

const (
	outside   = "outside_workspace"
	sensitive = "sensitive_path"
)

// abs resolves by the text alone: the caller has followed the links.
func (o *operation) abs(p, dir string) string {
	p = strings.TrimPrefix(filepath.ToSlash(p), "file://")
	for _, home := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(p, home); ok && o.r.Home != "" && (rest == "" || rest[0] == '/') {
			p = filepath.ToSlash(o.r.Home) + rest
		}
	}
	if strings.HasPrefix(p, "~") { // somebody's home: a place of its own
		first, rest, _ := strings.Cut(p, "/")
		return first + path.Clean("/"+rest)
	}
	if isAbs(p) {
		return path.Clean(p)
	}
	return path.Join(filepath.ToSlash(dir), p)
}

// isAbs reports whether a path with slashes starts at a root or a drive.
func isAbs(p string) bool {
	return strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// within gives the part of p below dir.
func within(p, dir string) (rel string, ok bool) {
	dir = path.Clean(filepath.ToSlash(dir))
	if !isAbs(dir) || !isAbs(p) {
		return "", false
	}
	if p == dir {
		return ".", true
	}
	return strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func inside(p, dir string) bool {
	_, ok := within(p, dir)
	return ok
}

// touch examines a use of a path; where it lies, and what it is called.
func (o *operation) touch(p string, how use) {
	if slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"}, p) && how != removes {
		return
	}
	o.name(p, how)
	roots := append([]string{o.r.Workspace}, o.r.Output...)
	in := slices.ContainsFunc(roots, func(dir string) bool { return inside(p, dir) })
	switch {
	case how == removes && slices.ContainsFunc(roots, func(dir string) bool { return path.Clean(filepath.ToSlash(dir)) == p }):
		o.where.raise(doubtful, "removes_workspace", p)
	case in:
	case how == reads && ofSystem(p):
		o.system = true
	default:
		o.where.raise(doubtful, outside, p)
	}
}

// name examines what a path is called.
func (o *operation) name(p string, how use) {
	o.seen = append(o.seen, touched{p, how})
	if secret(p) || how != reads && guarded(p) {
		o.where.raise(doubtful, sensitive, p)
	}
}

// Folders whose files are no person's secrets: of the system, and of what
// package managers downloaded.
var (
	systemRoots = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc"}
	cacheParts  = []string{"/go/pkg/mod/", "/.cargo/registry/", "/.rustup/toolchains/", "/site-packages/", "/dist-packages/", "/node_modules/", "/.m2/repository/"}
)

func ofSystem(p string) bool {
	return slices.ContainsFunc(systemRoots, func(dir string) bool { return inside(p, dir) }) ||
		slices.ContainsFunc(cacheParts, func(s string) bool { return strings.Contains(p+"/", s) })
}

// segments are the parts of a path as any of the systems would read them: some
// ignore case, trailing dots and what follows a colon.
func segments(p string) []string {
	parts := strings.Split(strings.ToLower(strings.ReplaceAll(p, `\`, "/")), "/")
	for i, s := range parts {
		if at := strings.IndexByte(s, ':'); at > 1 {
			s = s[:at]
		}
		if t := strings.TrimRight(s, ". "); t != "" {
			s = t
		}
		parts[i] = s
	}
	return parts
}

// secretParts are folders and files that hold what lets somebody in.
var secretParts = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store", ".config/gh", ".config/glab-cli", ".config/gcloud",
	".config/op", ".config/rclone", ".config/google-chrome", ".config/chromium", ".mozilla", ".thunderbird", "library/keychains", "library/cookies",
	"library/mail", "library/messages", "library/safari", "application support/google/chrome", "application support/firefox",
	".local/share/keyrings", "etc/shadow", "etc/gshadow", "etc/sudoers", "etc/sudoers.d", "etc/ssl/private", "run/secrets",
	".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".git/config", ".git/credentials", ".vault-token",
	".terraform.d/credentials.tfrc.json", ".cargo/credentials", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".bash_history", ".zsh_history",
	".python_history", ".node_repl_history", ".psql_history", ".mysql_history", "cookies", "cookies.sqlite", "login data", "logins.json", "key4.db",
	"terraform.tfstate", ".envrc",
}

// secretNames are patterns of names.
var secretNames = []string{
	".env", ".env.*", "*.env", "credentials", "credentials.*", "client_secret*.json", "service-account*.json", "service_account*.json",
	"secrets.y*ml", "secrets.json", "secrets.toml", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
}

// examples of a settings file hold no secrets.
var examples = []string{".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", "credentials.go", "credentials.py", "credentials.ts", "credentials.md"}

// guardedParts run by themselves later, or decide what runs.
var guardedParts = []string{
	".git", "git~1", ".gitmodules", ".gitconfig", ".config/git", ".hg", ".svn", ".jj", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".config/fish",
	".config/systemd", ".config/autostart", "library/launchagents", "library/launchdaemons", ".pythonstartup", "sitecustomize.py", ".cargo/config.toml",
	".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab", ".circleci", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
	".drone.yml", ".woodpecker", ".woodpecker.yml", ".buildkite", ".forgejo", ".gitea", "appveyor.yml", ".appveyor.yml", ".ci", "cloudbuild.yaml", "buildspec.yml",
	".husky", ".pre-commit-config.yaml", "lefthook.yml", ".vscode", ".idea", ".devcontainer", ".yarnrc", ".yarnrc.yml",
	".claude", ".codex", ".gemini", ".cursor", ".opencode", ".mcp.json",
}

func secret(p string) bool {
	segs := segments(p)
	if has(segs, secretParts) || hasRun(segs, "proc", "environ") || hasRun(segs, "proc", "mem") {
		return true
	}
	for _, s := range segs {
		if matchesAny(secretNames, s) && !slices.Contains(examples, s) {
			return true
		}
	}
	return false
}

func guarded(p string) bool { return has(segments(p), guardedParts) }

// has reports whether a path has one of the parts, which may be several segments.
func has(segs, parts []string) bool {
	whole := "/" + strings.Join(segs, "/") + "/"
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(whole, "/"+part+"/") })
}

// hasRun finds first anywhere and last at the end.
func hasRun(segs []string, first, last string) bool {
	return slices.Contains(segs, first) && segs[len(segs)-1] == last
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// couldBeSecret reports whether a shell pattern may stand for a sensitive name.
// A pattern that says next to nothing ("*") does not count: the shell leaves
// hidden files out of it.
func couldBeSecret(pattern string) bool {
	for _, s := range segments(pattern) {
		if !strings.ContainsAny(s, "*?[") {
			continue
		}
		if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "[") || strings.HasPrefix(s, "?") {
			return true
		}
		letters := strings.Trim(s, "*?[]")
		if len(letters) < 3 {
			continue
		}
		for _, name := range []string{"credentials", "credentials.json", "cookies", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa", "secrets.yml", "secrets.yaml", "a.pem", "a.key", "a.p12", "a.pfx", "a.env"} {
			if ok, err := path.Match(s, name); err != nil || ok && s != "*.json" && s != "*.yml" && s != "*.yaml" {
				return true
			}
		}
	}
	return false
}
