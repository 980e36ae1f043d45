package stores

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/stores/db"
	"witan/stores/ledger"
	"witan/stores/packs"
)

// CheckRow is one damage, or, last, the count.
type CheckRow struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	Conversation string `json:"conversation,omitempty"`
	Run          string `json:"run,omitempty"`
	File         string `json:"file"`
	Reason       string `json:"reason"`
	Quarantined  any    `json:"quarantined"` // path, or false
}

// Check looks at everything stored in dir and gives a row per damage. The
// caller holds the lock, or dir is a copy. It changes no byte.
//
// Files are checked first, without the database; the database is opened only
// when its files hold, and then for reading.
func Check(ctx context.Context, dir string, yield func(CheckRow) error) (damaged, checked int, err error) {
	emit := func(ds []db.Damage, n int) error {
		checked += n
		for _, d := range ds {
			damaged++
			row := CheckRow{Kind: d.Kind, ID: d.ID, File: d.File, Reason: d.Reason, Quarantined: false}
			if d.Quarantined != "" {
				row.Quarantined = d.Quarantined
			}
			if d.Kind == "record" {
				row.Run = d.ID
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := db.ReadFormat(dir)
	checked++
	switch {
	case kernel.IsKind(err, kernel.Corrupt):
		return damaged + 1, checked, yield(CheckRow{Kind: "format", ID: "FORMAT", File: "FORMAT", Reason: err.Error(), Quarantined: false})
	case kernel.IsKind(err, kernel.NotFound):
		return 0, 0, nil // nothing is stored yet
	case err != nil:
		return 0, checked, err
	}
	ds, n, err := db.CheckFiles(dir)
	if err != nil {
		return damaged, checked, err
	}
	if err := emit(ds, n); err != nil {
		return damaged, checked, err
	}
	key, err := db.PackKey(f)
	if err != nil {
		return damaged, checked, err
	}
	pds, n, err := packs.CheckFiles(dir, key)
	if err != nil {
		return damaged, checked, err
	}
	if err := emit(pds, n); err != nil {
		return damaged, checked, err
	}
	if len(ds) > 0 {
		return damaged, checked, quarantine(dir, &damaged, yield)
	}
	if err := checkDatabase(ctx, dir, emit); err != nil {
		return damaged, checked, err
	}
	return damaged, checked, quarantine(dir, &damaged, yield)
}

func checkDatabase(ctx context.Context, dir string, emit func([]db.Damage, int) error) error {
	if _, err := os.Stat(filepath.Join(dir, "db", "MANIFEST")); errors.Is(err, fs.ErrNotExist) {
		return nil // opened once and killed before anything was written
	}
	d, done, err := db.View(dir, nil)
	if kernel.IsKind(err, kernel.Corrupt) {
		return emit([]db.Damage{{Kind: "database", ID: "db", File: "db", Reason: err.Error()}}, 1)
	}
	if err != nil {
		return err
	}
	err = func() error {
		if why := d.CheckTables(); why != "" {
			return emit([]db.Damage{{Kind: "database", ID: "db", File: "db", Reason: why}}, 1)
		}
		l, err := ledger.OpenView(d)
		if err != nil {
			return err
		}
		bad, n, err := l.Check(ctx)
		if err == nil {
			err = emit(bad, n)
		}
		if err != nil {
			return err
		}
		bad, n, err = packs.View(packs.Options{DB: d, Key: d.PackKey()}).Check(ctx)
		if err == nil {
			err = emit(bad, n)
		}
		return err
	}()
	return errors.Join(err, done())
}

// quarantine names what an earlier open set aside.
func quarantine(dir string, damaged *int, yield func(CheckRow) error) error {
	entries, err := os.ReadDir(filepath.Join(dir, "quarantine"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		*damaged++
		rel := "quarantine/" + e.Name()
		if err := yield(CheckRow{Kind: "database", ID: e.Name(), File: rel, Reason: "was damaged when the database was opened; its bytes are kept", Quarantined: rel}); err != nil {
			return err
		}
	}
	return nil
}

// CheckLive checks an open data directory through its own handles: pack files
// byte by byte, every record and every small pack.
func (s *Store) CheckLive(ctx context.Context, yield func(CheckRow) error) (damaged, checked int, err error) {
	var all []db.Damage
	ds, n, err := packs.CheckFiles(s.DB.Dir, s.DB.PackKey())
	if err != nil {
		return 0, 0, err
	}
	all, checked = append(all, ds...), n
	ds, n, err = s.Ledger.Check(ctx)
	if err != nil {
		return 0, checked, err
	}
	all, checked = append(all, ds...), checked+n
	ds, n, err = s.Packs.Check(ctx)
	if err != nil {
		return 0, checked, err
	}
	all, checked = append(all, ds...), checked+n
	for _, d := range all {
		damaged++
		row := CheckRow{Kind: d.Kind, ID: d.ID, File: d.File, Reason: d.Reason, Quarantined: false}
		if d.Kind == "record" {
			row.Run = d.ID
		}
		if err := yield(row); err != nil {
			return damaged, checked, err
		}
	}
	return damaged, checked, quarantine(s.DB.Dir, &damaged, yield)
}
