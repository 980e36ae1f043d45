package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"witan/kernel"
)

// before is what a kind of review found before anything was changed. Findings
// are kept as digests: the file may lie where nothing is encrypted.
type before struct {
	Version int             `json:"version"`
	Print   kernel.Digest   `json:"print"` // of the workspace
	High    []kernel.Digest `json:"high"`  // findings of high severity, see key; sorted
}

// key is what makes a finding the same one in changed content, where its line
// may be another.
func key(o kernel.Outcome) kernel.Digest {
	return kernel.Sum([]byte(o.Path + "\x00" + o.Title))
}

func (b before) had(o kernel.Outcome) bool { return slices.Contains(b.High, key(o)) }

// beforeFile is where a run keeps what a kind of review found before the work:
// in the folder that holds those of its turns, so that it outlives the host. ""
// where a turn's folder lies elsewhere; every fault counts as new then.
func beforeFile(t task, kind string) string {
	run := filepath.Dir(t.turn.State)
	if t.b.Run == "" || filepath.Base(run) != t.b.Run {
		return ""
	}
	return filepath.Join(run, "before-"+kind+".json")
}

// saveBefore keeps b. What cannot be kept is not known later, which is said then.
func saveBefore(file string, b before) {
	raw, err := json.Marshal(b)
	if err != nil {
		return
	}
	w, err := os.CreateTemp(filepath.Dir(file), ".tmp-before-*")
	if err != nil {
		return
	}
	_, err = w.Write(raw)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(w.Name(), file)
	}
	if err != nil {
		_ = os.Remove(w.Name())
	}
}

// loadBefore returns what was kept; ok is false where nothing is that can be read.
func loadBefore(file string) (b before, ok bool) {
	raw, err := os.ReadFile(file)
	if file == "" || err != nil || json.Unmarshal(raw, &b) != nil || b.Version != 1 {
		return before{}, false
	}
	return b, true
}
