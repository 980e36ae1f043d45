package isolation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"witan/kernel"
)

const (
	markerFile = "marker.json"
	indexFile  = "index"
	maxMarker  = 64 << 10
	keptFolder = "kept"
)

// marker says what a folder of ours is, and what is needed to take it away.
type marker struct {
	Version    int           `json:"version"`
	Name       string        `json:"name"` // of the folder, so that a copied marker proves nothing
	Run        kernel.RunID  `json:"run"`
	How        string        `json:"how"`
	Snapshot   kernel.Digest `json:"snapshot"`
	Candidate  kernel.Digest `json:"candidate,omitzero"`
	Workspace  string        `json:"workspace"`
	Commit     string        `json:"commit,omitempty"`
	Repository string        `json:"repository,omitempty"` // what its worktrees share
	Admin      string        `json:"admin,omitempty"`      // git's folder of the worktree, or of the repository
	Ready      bool          `json:"ready"`                // the turn may have begun
}

// entry is one folder below the root: the marker, an index of git as it was at the
// beginning, and the content, in a folder that bears the name of the entry.
type entry struct {
	marker
	root string // resolved
}

func (e *entry) at(name string) string { return filepath.Join(e.root, e.Name, name) }

// dir is the content.
func (e *entry) dir() string { return e.at(e.Name) }

// resolved makes the root and returns where it really is.
func (p *Places) resolved() (string, error) {
	if err := os.MkdirAll(p.Root, 0o700); err != nil {
		return "", disk("isolation", err, "the folder for places %s cannot be made", p.Root)
	}
	root, err := filepath.EvalSymlinks(p.Root)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return "", disk("isolation", err, "the folder for places %s cannot be used", p.Root)
	}
	return root, nil
}

// create makes an entry whose marker is there before anything else is.
func (p *Places) create(t kernel.Turn, ws kernel.Workspace) (*entry, error) {
	root, err := p.resolved()
	if err != nil {
		return nil, err
	}
	how := Copy
	switch {
	case t.Write && t.InPlace:
		how = InPlace
	case ws.Kind == "git" && ws.Commit != "":
		how = Worktree
	}
	if t.Run == "" || strings.ContainsFunc(string(t.Run), unsafe) {
		return nil, kernel.E("isolation.Open", kernel.Invalid, nil, "the turn has no run that a folder can be named after")
	}
	at, err := os.MkdirTemp(root, string(t.Run)+"-")
	if err != nil {
		return nil, disk("isolation.Open", err, "no place can be made in %s", root)
	}
	e := &entry{root: root, marker: marker{Version: 1, Name: filepath.Base(at), Run: t.Run, How: how, Snapshot: t.Snapshot,
		Candidate: t.Candidate, Workspace: ws.Path, Commit: ws.Commit}}
	if err := e.save(); err != nil {
		_ = os.RemoveAll(at)
		return nil, err
	}
	return e, nil
}

func unsafe(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
}

// save writes the marker: the old one, or the new one, at any time.
func (e *entry) save() error {
	b, err := json.Marshal(e.marker)
	if err != nil {
		return kernel.E("isolation.save", kernel.Internal, err, "the marker cannot be encoded")
	}
	if err := writeFile(e.at(markerFile), append(b, '\n')); err != nil {
		return disk("isolation.save", err, "the marker of place %s cannot be written", e.Name)
	}
	return nil
}

func writeFile(to string, b []byte) error {
	f, err := os.OpenFile(to+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(to+".tmp", to)
	}
	return err
}

// load reads the entry called name. NotFound: it is none of ours.
func load(root *os.Root, dir, name string) (*entry, error) {
	foreign := func(err error) error {
		return kernel.E("isolation.load", kernel.NotFound, err, "%q in %s is no place of ours", name, dir)
	}
	if name == "" || name != filepath.Base(name) || !filepath.IsLocal(name) || name == keptFolder {
		return nil, foreign(nil)
	}
	if fi, err := root.Lstat(name); err != nil || !fi.IsDir() { // a link is no folder
		return nil, foreign(err)
	}
	rel := filepath.Join(name, markerFile)
	fi, err := root.Lstat(rel)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxMarker {
		return nil, foreign(err)
	}
	b, err := root.ReadFile(rel)
	if err != nil {
		return nil, foreign(err)
	}
	e := &entry{root: dir}
	if err := kernel.DecodeStrict(b, &e.marker); err != nil {
		return nil, foreign(err)
	}
	known := e.How == Worktree || e.How == Copy || e.How == InPlace
	if e.Version != 1 || e.Name != name || e.Run == "" || !strings.HasPrefix(name, string(e.Run)+"-") || !known {
		return nil, foreign(nil)
	}
	return e, nil
}
