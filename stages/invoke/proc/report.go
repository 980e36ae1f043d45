package proc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"witan/kernel"
)

// Report is what a supervisor leaves in the file that Spec.Report names, so that
// a later host learns how a program ended that outlived the one before.
type Report struct {
	PID    int       `json:"pid"`
	Start  string    `json:"start"` // with PID it names one process for ever; "" where the system does not say
	Marker string    `json:"marker"`
	At     time.Time `json:"at"`
	Exit   Exit      `json:"exit"`
}

// ReadReport reads a report. A file that is not there is NotFound: the
// supervisor still works, or was killed too.
func ReadReport(path string) (Report, error) {
	const op = "proc.ReadReport"
	var r Report
	b, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return r, kernel.E(op, kernel.NotFound, err, "there is no report of the end")
	case err != nil:
		return r, kernel.E(op, kernel.Unavailable, err, "the report of the end cannot be read")
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, kernel.E(op, kernel.Corrupt, err, "the report of the end is damaged")
	}
	return r, nil
}

// write puts r at path, durable and whole or not at all.
func (r Report) write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // some systems cannot sync a folder; the file itself is durable
		dir.Close()
	}
	return nil
}
