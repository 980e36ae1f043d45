package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"witan/kernel"
	"witan/stores/conversations"
	"witan/stores/db"
	"witan/stores/ledger"
	"witan/stores/packs"
)

// CheckRow is one damage.
type CheckRow struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	Conversation string `json:"conversation,omitempty"` // where known
	Run          string `json:"run,omitempty"`          // where known
	File         string `json:"file"`
	Reason       string `json:"reason"`
	Quarantined  any    `json:"quarantined"` // path, or false
}

// checker counts what was looked at and gives a row per damage.
type checker struct {
	dir              string
	yield            func(CheckRow) error
	damaged, checked int
}

// add takes what one part of a check gave.
func (c *checker) add(bad []db.Damage, n int, err error) error {
	if err != nil {
		return err
	}
	c.checked += n
	for _, d := range bad {
		c.damaged++
		r := CheckRow{Kind: d.Kind, ID: d.ID, Conversation: string(d.Conversation), Run: string(d.Run), File: d.File, Reason: d.Reason, Quarantined: false}
		if d.Quarantined != "" {
			r.Quarantined = d.Quarantined
		}
		if err := c.yield(r); err != nil {
			return err
		}
	}
	return nil
}

// Check looks at everything stored in dir, gives a row per damage, and counts.
// The caller holds the lock, or dir is a copy. It changes no byte.
//
// Files are checked first, without the database; the database is opened only
// when its files hold, and then for reading.
func Check(ctx context.Context, dir string, yield func(CheckRow) error) (damaged, checked int, err error) {
	c := &checker{dir: dir, yield: yield}
	err = c.all(ctx)
	return c.damaged, c.checked, err
}

func (c *checker) all(ctx context.Context) error {
	f, err := db.ReadFormat(c.dir)
	if kernel.IsKind(err, kernel.NotFound) {
		return nil // nothing is stored yet
	}
	if err != nil {
		return c.format(err)
	}
	key, err := db.PackKey(f)
	if err != nil {
		return err
	}
	if err := c.add(nil, 1, nil); err != nil {
		return err
	}
	bad, n, err := db.CheckFiles(c.dir)
	if err := c.add(bad, n, err); err != nil {
		return err
	}
	pbad, n, err := packs.CheckFiles(c.dir, key)
	if err := c.add(pbad, n, err); err != nil {
		return err
	}
	if len(bad) == 0 {
		if err := c.database(ctx); err != nil {
			return err
		}
	}
	return c.quarantine()
}

// format takes an error of reading FORMAT.
func (c *checker) format(err error) error {
	if !kernel.IsKind(err, kernel.Corrupt) {
		return err
	}
	return c.add([]db.Damage{{Kind: "format", ID: "FORMAT", File: "FORMAT", Reason: err.Error()}}, 1, nil)
}

// database checks what is in a database whose files hold.
func (c *checker) database(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(c.dir, "db", "MANIFEST")); errors.Is(err, fs.ErrNotExist) {
		return nil // opened once and killed before anything was written
	}
	d, done, err := db.View(c.dir, nil)
	if kernel.IsKind(err, kernel.Corrupt) {
		return c.tables(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(c.contents(ctx, d), done())
}

func (c *checker) tables(why string) error {
	if why == "" {
		return nil
	}
	return c.add([]db.Damage{{Kind: "database", ID: "db", File: "db", Reason: why}}, 1, nil)
}

func (c *checker) contents(ctx context.Context, d *db.DB) error {
	if why := d.CheckTables(); why != "" {
		return c.tables(why)
	}
	l, err := ledger.OpenView(d)
	if err != nil {
		return err
	}
	if err := c.add(l.Check(ctx)); err != nil {
		return err
	}
	if err := c.add(packs.View(packs.Options{DB: d, Key: d.PackKey()}).Check(ctx)); err != nil {
		return err
	}
	return c.add(conversations.Open(d).CheckQueues(ctx))
}

// quarantine names what an earlier open set aside.
func (c *checker) quarantine() error {
	entries, err := os.ReadDir(filepath.Join(c.dir, "quarantine"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var bad []db.Damage
	for _, e := range entries {
		rel := "quarantine/" + e.Name()
		bad = append(bad, db.Damage{Kind: "database", ID: e.Name(), File: rel, Quarantined: rel,
			Reason: "was damaged when the database was opened; its bytes are kept"})
	}
	return c.add(bad, 0, nil)
}

// CheckLive checks an open data directory: its files as they are on the disk,
// and every record and pack through the open database.
func (s *Store) CheckLive(ctx context.Context, yield func(CheckRow) error) (damaged, checked int, err error) {
	c := &checker{dir: s.DB.Dir, yield: yield}
	err = c.live(ctx, s)
	return c.damaged, c.checked, err
}

func (c *checker) live(ctx context.Context, s *Store) error {
	if _, err := db.ReadFormat(c.dir); err != nil {
		if err := c.format(err); err != nil {
			return err
		}
	}
	bad, n, err := liveFiles(c.dir)
	if err := c.add(bad, n, err); err != nil {
		return err
	}
	if len(bad) == 0 {
		if err := c.tables(s.DB.CheckTables()); err != nil {
			return err
		}
	}
	if err := c.add(packs.CheckFiles(c.dir, s.DB.PackKey())); err != nil {
		return err
	}
	if err := c.entries(ctx, s, len(bad) > 0); err != nil {
		return err
	}
	return c.quarantine()
}

// entries reads everything through an open database. Badger panics in the middle
// of a read when the table that it looks into was changed below it; where files
// are known to be damaged, that is one damage more and not the end of the host.
func (c *checker) entries(ctx context.Context, s *Store, broken bool) (err error) {
	if broken {
		defer func() {
			if p := recover(); p != nil {
				err = c.tables(fmt.Sprint("a table cannot be read: ", p))
			}
		}()
	}
	if err := c.add(s.Ledger.Check(ctx)); err != nil {
		return err
	}
	if err := c.add(s.Packs.Check(ctx)); err != nil {
		return err
	}
	return c.add(s.Conversations.CheckQueues(ctx))
}

// liveFiles checks the files of a database that is written to meanwhile. A file
// that is looked at while it grows may seem damaged, but not twice in the same place.
func liveFiles(dir string) ([]db.Damage, int, error) {
	first, _, err := db.CheckFiles(dir)
	if err != nil {
		return nil, 0, err
	}
	second, n, err := db.CheckFiles(dir)
	return slices.DeleteFunc(second, func(d db.Damage) bool { return !slices.Contains(first, d) }), n, err
}
