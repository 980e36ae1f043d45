package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"witan/cmd/internal/client"
	"witan/cmd/internal/wire"
	"witan/kernel"
	"witan/stages/invoke/proc"
	"witan/stores"
	"witan/stores/db"
)

// FileArgs names a file of the caller, absolute.
type FileArgs struct {
	File string `json:"file"`
}

type countRow struct {
	Damaged int `json:"damaged"`
	Checked int `json:"checked"`
}

// Check checks a data directory: through its host, if one runs, else directly.
func Check(ctx context.Context, o Options, emit Emit) error {
	switch fi, err := os.Stat(o.Home); {
	case errors.Is(err, fs.ErrNotExist): // "0 damaged" would be an answer about something else
		return kernel.E("host.Check", kernel.ReadOnly, nil, "there is no data directory %s", o.Home).WithNext("name another with --home or WITAN_HOME")
	case err == nil && !fi.IsDir():
		return kernel.E("host.Check", kernel.ReadOnly, nil, "%s is not a folder", o.Home).WithNext("name the data directory with --home or WITAN_HOME")
	}
	if c, err := client.Dial(ctx, o.Home, o.Version); err == nil {
		return c.Call(ctx, "check", struct{}{}, emit)
	}
	lock, err := db.TakeLock(o.Home)
	if err != nil {
		return err
	}
	defer lock.Release()
	return check(ctx, o.Home, emit)
}

func check(ctx context.Context, dir string, emit Emit) error {
	damaged, checked, err := stores.Check(ctx, dir, func(r stores.CheckRow) error { return give(emit, r) })
	if err != nil {
		return err
	}
	return give(emit, countRow{damaged, checked})
}

// opCheck checks a live directory: every file as it is on the disk, and the
// database through the host that has it open.
func opCheck(ctx context.Context, h *Host, _ none, emit Emit) error {
	damaged, checked, err := h.store.CheckLive(ctx, func(r stores.CheckRow) error { return give(emit, r) })
	if err != nil {
		return err
	}
	return give(emit, countRow{damaged, checked})
}

// Restore makes a new data directory from a backup.
func Restore(ctx context.Context, o Options, file string) error {
	if _, err := client.Dial(ctx, o.Home, o.Version); err == nil {
		return kernel.E("host.Restore", kernel.Locked, nil, "a host is running for %s", o.Home).WithNext("end it, or restore into another folder with --home")
	}
	return stores.Restore(ctx, file, o.Home)
}

func opBackup(ctx context.Context, h *Host, a FileArgs, emit Emit) error {
	if err := h.store.Ledger.Witness(ctx); err != nil {
		return err
	}
	n, size, err := h.store.Backup(ctx, a.File)
	if err != nil {
		return err
	}
	return give(emit, struct {
		File    string `json:"file"`
		Bytes   int64  `json:"bytes"`
		Entries int    `json:"entries"`
	}{a.File, size, n})
}

func opCompact(ctx context.Context, h *Host, _ none, emit Emit) error {
	before, after, err := h.store.Compact()
	if err != nil {
		return err
	}
	return give(emit, struct {
		Before int64 `json:"before"`
		After  int64 `json:"after"`
	}{before, after})
}

type doctorRow struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Text  string `json:"text"`
	Next  string `json:"next"`
}

// opDoctor says what is ready and what is missing.
func opDoctor(ctx context.Context, h *Host, _ none, emit Emit) error {
	rows := []doctorRow{{"data", true, "data directory " + h.opts.Home, ""}, {"key", true, db.KeyLocation(h.store.DB.Format), ""}}
	if !h.store.DB.Format.Encryption {
		rows[1].Next = "set encryption = true for a new data directory"
	}
	if why := h.store.DB.Unwell(); why != "" {
		rows = append(rows, doctorRow{"database", false, "the database reported: " + why, "run witan check"})
	} else {
		rows = append(rows, doctorRow{"database", true, "the database reported no error", ""})
	}
	text, ok := proc.Landlock()
	r := doctorRow{"confinement", ok, "read-only turns are enforced: " + text, ""}
	if !ok {
		r.Text, r.Next = "read-only turns are not enforced: "+text, "use a Linux kernel of version 6.2 or newer, with Landlock switched on"
	}
	rows = append(rows, r)
	rows = append(rows, tool("git", "git folders are frozen by commit", "install git; until then folders are frozen as trees"))
	if h.reaped > 0 {
		rows = append(rows, doctorRow{"survivors", true, fmt.Sprintf("%d processes of a dead host were ended", h.reaped), ""})
	}
	for _, d := range h.store.DB.Damaged {
		rows = append(rows, doctorRow{"quarantine", false, d.File + ": " + d.Reason, "its bytes are in " + d.Quarantined + "; run witan check"})
	}
	for _, m := range h.agents {
		a := m.row(h.opts.Version)
		rows = append(rows, doctorRow{"agent " + string(m.ID), a.Status == "ready", a.Status + ": " + strings.TrimSpace(a.Name), a.Next})
	}
	for _, r := range rows {
		if err := give(emit, r); err != nil {
			return err
		}
	}
	return give(emit, struct {
		Unsafe []string `json:"unsafe"`
	}{[]string{}})
}

func tool(name, text, next string) doctorRow {
	if _, err := proc.LookPath(name, ""); err != nil {
		return doctorRow{name, false, name + " is not on the PATH", next}
	}
	return doctorRow{name, true, text, ""}
}

// Version is what `witan version` prints. Schema is the number of the stored format.
type Version struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Schema   int    `json:"schema"`
	Protocol int    `json:"protocol"`
	Go       string `json:"go"`
}

// VersionRow fills in the numbers of this build.
func VersionRow(version, commit string) Version {
	return Version{version, commit, db.Schema, wire.Protocol, runtime.Version()}
}
