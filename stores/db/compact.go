package db

// Compaction is ours to ask for: after each open, and every so many commits.
const (
	levelZeroMost = 8    // tables before they are merged
	commitsEach   = 4096 // between two looks at their number
)

// tidy merges tables in the background when there are many: each stop leaves one.
func (d *DB) tidy() {
	if !d.tidying.CompareAndSwap(false, true) {
		return
	}
	d.wg.Go(func() {
		defer d.tidying.Store(false)
		d.merge()
	})
}

func (d *DB) merge() {
	if len(d.Levels()) == 0 || d.Levels()[0].NumTables < levelZeroMost {
		return
	}
	if _, _, err := d.Compact(); err != nil {
		d.log.Warn("tables not merged", "err", err)
	}
}

// Compact merges all tables and gives back the space of deleted and outdated
// entries; sizes in bytes. It fails with NoSpace where there is no room for new
// tables beside the old ones: Badger would not survive to find that out.
func (d *DB) Compact() (before, after int64, err error) {
	d.merging.Lock()
	defer d.merging.Unlock()
	before = d.tables()
	if err := d.room(minFree + 2*before); err != nil {
		return before, before, err
	}
	if err := d.Flatten(1); err != nil {
		return before, before, DiskError("db.Compact", d.Dir, err)
	}
	return before, d.tables(), nil
}

// tables is the size of all tables in bytes.
func (d *DB) tables() (n int64) {
	for _, l := range d.Levels() {
		n += l.Size
	}
	return n
}
