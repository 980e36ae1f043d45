package desk

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"witan/ui/shell"
)

// prefsFile is where a window's choices are kept, in the data directory.
const prefsFile = "window.json"

// LoadPrefs reads what a person chose in the window. A file that is missing or
// cannot be read means that nothing was chosen.
func LoadPrefs(dir string) shell.Prefs {
	var p shell.Prefs
	b, err := os.ReadFile(filepath.Join(dir, prefsFile))
	if err != nil || json.Unmarshal(b, &p) != nil {
		return shell.Prefs{}
	}
	return p
}

// SavePrefs writes what a person chose; a crash leaves the old file or the new
// one, and at most a file named *.tmp beside it.
func SavePrefs(dir string, p shell.Prefs) error {
	b, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // the data directory was removed meanwhile
	}
	name := filepath.Join(dir, prefsFile)
	if err := os.WriteFile(name+".tmp", append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}
