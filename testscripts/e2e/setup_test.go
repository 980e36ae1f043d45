//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// What TestMain makes, once for all tests.
var (
	cache       string // survives the test
	opencode    string // path of the real agent
	witan       string // path of the product
	modelserver string // path of the model server
)

func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		log.Print(err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	cache = os.Getenv("WITAN_E2E_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return 0, fmt.Errorf("no cache directory (set WITAN_E2E_CACHE): %w", err)
		}
		cache = filepath.Join(dir, "witan-e2e")
	}
	var err error
	if opencode, err = install(cache); err != nil {
		return 0, err
	}
	bin, err := os.MkdirTemp("", "witan-e2e-bin-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(bin)
	witan, modelserver = filepath.Join(bin, "witan"), filepath.Join(bin, "modelserver")
	build := exec.Command("go", "build", "-o", bin, "witan/cmd/witan", "witan/cmd/modelserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}

//go:embed opencode/package.json opencode/package-lock.json
var pinned embed.FS

// install brings the pinned agent into the cache, unless it is there, and
// returns its path. It becomes visible under its final name only when complete.
func install(cache string) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("the agent is locked for linux/amd64 only, this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	var pkg struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	b, err := pinned.ReadFile("opencode/package.json")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(b, &pkg); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "opencode-"+pkg.Dependencies["opencode-linux-x64-baseline"])
	program := filepath.Join("node_modules", "opencode-linux-x64-baseline", "bin", "opencode")
	if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
		return filepath.Join(dir, program), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, ".tmp-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	for _, name := range []string{"package.json", "package-lock.json"} {
		b, err := pinned.ReadFile("opencode/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(part, name), b, 0o644); err != nil {
			return "", err
		}
	}
	log.Printf("installing %s", filepath.Base(dir))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--prefix", part, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	npm.Dir = part
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	_, err = os.Stat(filepath.Join(dir, program))
	return filepath.Join(dir, program), err
}

// world is the surroundings of one test: a small project, a data directory, the
// agent's own folders and a model server.
type world struct {
	t         *testing.T
	workspace string
	home      string // data directory
	agent     string // everything the agent keeps
	requests  string // log of the model server
	env       []string
	agentEnv  map[string]string
}

// newWorld makes the world; scenario gets the path of the workspace.
func newWorld(t *testing.T, scenario func(workspace string) any) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, workspace: filepath.Join(dir, "project"), home: filepath.Join(dir, "data"),
		agent: filepath.Join(dir, "agent"), requests: filepath.Join(dir, "requests.jsonl")}
	for _, d := range []string{w.home, w.agent, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The compiler's cache is kept: the runner compiles the project's tests.
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"XDG_CACHE_HOME=" + filepath.Join(cache, "xdg"), "WITAN_HOME=" + w.home}
	makeProject(t, w.workspace, w.env)
	w.serveModel(scenario(w.workspace))
	w.configure()
	return w
}

// makeProject writes a small project with a test and commits it.
func makeProject(t *testing.T, dir string, env []string) {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod":       "module example.test/sum\n\ngo 1.21\n",
		"sum.go":       "// Package sum adds.\npackage sum\n\n// Two adds two numbers.\nfunc Two(a, b int) int { return a + b }\n",
		"sum_test.go":  "package sum\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two(1, 2) != 3 {\n\t\tt.Fatal(\"no\")\n\t}\n}\n",
		"README.md":    "# sum\n\nAdds two numbers; see [the code](sum.go).\n",
		".gitignore":   "/bin/\n",
		"docs/note.md": "Nothing to see.\n",
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."},
		{"-c", "user.name=e2e", "-c", "user.email=e2e@example.test", "commit", "-q", "-m", "A small project"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = dir, env
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
}

// serveModel starts the model server; it ends with its standard input.
func (w *world) serveModel(scenario any) {
	t := w.t
	t.Helper()
	file := filepath.Join(filepath.Dir(w.requests), "scenario.json")
	b, err := json.Marshal(scenario)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	srv := exec.Command(modelserver, "-scenario", file, "-log", w.requests)
	srv.Stderr = os.Stderr
	stdin, err := srv.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := srv.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	t.Cleanup(func() {
		stdin.Close()
		if err := srv.Wait(); err != nil {
			t.Errorf("model server: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("model server did not start: %v", err)
	}
	w.agentEnv = agentEnv(w.agent, strings.TrimSpace(url))
}

// agentEnv makes the agent use the model server, keep everything below dir and
// fetch nothing.
func agentEnv(dir, url string) map[string]string {
	config := map[string]any{
		"model": "scripted/scripted", "small_model": "scripted/scripted", "autoupdate": false, "share": "disabled",
		"provider": map[string]any{"scripted": map[string]any{
			"npm":     "@ai-sdk/openai-compatible",
			"options": map[string]any{"baseURL": url, "apiKey": "none"},
			"models":  map[string]any{"scripted": map[string]any{"tool_call": true, "limit": map[string]any{"context": 128000, "output": 8192}}},
		}},
	}
	b, err := json.Marshal(config)
	if err != nil {
		panic(err) // literals only
	}
	return map[string]string{
		"OPENCODE_CONFIG_CONTENT": string(b), "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
		"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "XDG_DATA_HOME": filepath.Join(dir, "data"),
		"XDG_STATE_HOME": filepath.Join(dir, "state"), "XDG_CACHE_HOME": filepath.Join(dir, "cache"),
	}
}

func (w *world) configure() {
	w.t.Helper()
	// Two that share a data folder lock each other out when they start together.
	agent := func(name, data string) map[string]any {
		env := maps.Clone(w.agentEnv)
		env["XDG_DATA_HOME"] = filepath.Join(w.agent, data)
		return map[string]any{"name": name, "protocol": "acp", "command": []string{opencode, "acp"}, "env": env, "state": []string{w.agent}}
	}
	b, err := toml.Marshal(map[string]any{
		"encryption": false,
		"agents":     map[string]any{"opencode": agent("OpenCode", "state"), "reviewer": agent("A second OpenCode", "state2")},
		"watchdog":   map[string]any{"startup": "3m"}, // it takes seconds, on a busy machine many
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// row is a line of NDJSON.
type row map[string]any

func (r row) str(key string) string { s, _ := r[key].(string); return s }

// run runs witan and returns the rows it printed. Any exit code but 0 fails the test.
func (w *world) run(args ...string) []row {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, witan, args...)
	cmd.Env = w.env
	cmd.Dir = filepath.Dir(w.workspace)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 10*time.Second
	err := cmd.Run()
	rows, bad := parseRows(&stdout)
	if err != nil || bad != nil {
		for _, r := range rows {
			t.Log(r)
		}
		t.Fatalf("witan %s: %v, %v\n%s", args[0], err, bad, &stderr)
	}
	return rows
}

func parseRows(r io.Reader) ([]row, error) {
	var rows []row
	for dec := json.NewDecoder(r); ; {
		var v row
		switch err := dec.Decode(&v); {
		case err == io.EOF:
			return rows, nil
		case err != nil:
			return rows, err
		}
		rows = append(rows, v)
	}
}

// asked returns what the model was asked, by step of the scenario.
func (w *world) asked() map[string]row {
	w.t.Helper()
	f, err := os.Open(w.requests)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	rows, err := parseRows(f)
	if err != nil {
		w.t.Fatal(err)
	}
	byStep := map[string]row{}
	for _, r := range rows {
		byStep[r.str("step")] = r
	}
	return byStep
}
