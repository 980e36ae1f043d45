package acp

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"witan/stages/invoke/jsonrpc"
	"witan/stages/invoke/proc"
	"witan/stages/invoke/turn"
)

const maxFile = 8 << 20 // bytes of a file that is read or written for an agent

func refuse(why string) error { return &jsonrpc.Error{Code: codeParams, Message: why} }

// inside opens the workspace and names path in it. What the name leads to is
// checked again when it is used: the root follows nothing that leads outside.
func (j *job) inside(path string) (root *os.Root, name string, err error) {
	top := turn.Resolve(j.req.Workspace, ".")
	name, err = filepath.Rel(top, turn.Resolve(top, path))
	if err != nil || !filepath.IsLocal(name) {
		return nil, "", refuse("the file is outside of the workspace")
	}
	if root, err = os.OpenRoot(top); err != nil {
		return nil, "", refuse("the workspace cannot be opened")
	}
	return root, name, nil
}

// openRead is how a file is opened that may turn out to be a pipe.
func openRead() int {
	if runtime.GOOS == "windows" {
		return os.O_RDONLY
	}
	return os.O_RDONLY | syscall.O_NONBLOCK
}

// readFile serves a file of the workspace, and no other.
func (j *job) readFile(params json.RawMessage) (any, error) {
	var p struct {
		Path  string `json:"path"`
		Line  int    `json:"line"` // from 1
		Limit int    `json:"limit"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, errMalformed
	}
	root, name, err := j.inside(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, openRead(), 0)
	if err != nil {
		return nil, refuse("there is no such file in the workspace, or it cannot be read")
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return nil, refuse("it is no regular file of at most 8 MiB")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, refuse("the file cannot be read")
	}
	return map[string]any{"content": lines(strings.ToValidUTF8(string(b), "\uFFFD"), p.Line, p.Limit)}, nil
}

// lines is the part of text from the given line on; limit 0 is no limit.
func lines(text string, line, limit int) string {
	if line <= 1 && limit <= 0 {
		return text
	}
	all := strings.SplitAfter(text, "\n")
	from := min(max(line-1, 0), len(all))
	to := len(all)
	if limit > 0 {
		to = min(from+limit, to)
	}
	return strings.Join(all[from:to], "")
}

// writeFile writes a file of the workspace where the turn may do so: some agents
// hand an approved edit to their client.
func (j *job) writeFile(params json.RawMessage) (any, error) {
	var p struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, errMalformed
	}
	if !j.req.Turn.Write {
		return nil, &jsonrpc.Error{Code: codeInvalid, Message: "this turn is read-only"}
	}
	if len(p.Content) > maxFile {
		return nil, refuse("the file is over 8 MiB")
	}
	root, name, err := j.inside(p.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	fi, missing := root.Stat(name)
	if missing == nil && !fi.Mode().IsRegular() {
		return nil, refuse("it is no regular file")
	}
	j.r.Changed() // also a write that fails half way
	if err := makeFolder(root, filepath.Dir(name)); err != nil {
		return nil, refuse("the folder cannot be made")
	}
	if err := root.WriteFile(name, []byte(p.Content), 0o644); err != nil {
		return nil, refuse("the file cannot be written")
	}
	if missing != nil {
		_ = root.Chmod(name, modeOf(0o666)) // where there are no modes, none is wrong
	}
	return map[string]any{}, nil
}

// modeOf is the mode of what the person would have created: this process makes
// everything its user's own.
func modeOf(m fs.FileMode) fs.FileMode { return m &^ fs.FileMode(proc.Umask()) }

// makeFolder makes a folder and those above it that are missing.
func makeFolder(root *os.Root, dir string) error {
	if _, err := root.Stat(dir); err == nil || dir == "." {
		return nil // what is no folder fails at the file
	}
	if err := makeFolder(root, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	_ = root.Chmod(dir, modeOf(0o777))
	return nil
}
