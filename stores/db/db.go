package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"witan/kernel"
)

// Sizes; pinned in FORMAT where Badger needs the same value again.
const (
	memtable       = 8 << 20
	valueThreshold = 1 << 20 // above every value we write: the value log stays empty
	minFree        = 48 << 20
)

// Options of Open.
type Options struct {
	Dir        string
	Encryption bool // of a new directory; FORMAT decides for an old one
	Log        *slog.Logger
	// Free replaces the question for free space, in tests.
	Free func(dir string) (int64, error)
	// Crash is called at named points, in crash tests. Nil in production.
	Crash func(point string)
}

// DB is an open data directory.
type DB struct {
	*badger.DB
	Dir     string
	Format  Format
	lock    *Lock
	master  []byte
	free    func(string) (int64, error)
	crash   func(string)
	unwell  atomic.Pointer[string] // first error that Badger logged
	Damaged []Damage               // what was found and set aside while opening
	log     *slog.Logger
	commits atomic.Int64
	tidying atomic.Bool
	merging sync.Mutex
	wg      sync.WaitGroup
}

// Open takes the lock, checks what Badger would not, and opens the database.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	const op = "db.Open"
	if o.Free == nil {
		o.Free = free
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, sub := range []string{"", "db", "packs", "stat", "quarantine", "snapshots"} {
		if sub == "db" { // only now: FORMAT must come first
			continue
		}
		if err := os.MkdirAll(filepath.Join(o.Dir, sub), 0o700); err != nil {
			return nil, DiskError(op, o.Dir, err)
		}
	}
	lock, err := TakeLock(o.Dir)
	if err != nil {
		return nil, err
	}
	d := &DB{Dir: o.Dir, lock: lock, free: o.Free, crash: o.Crash}
	defer func() {
		if err != nil {
			lock.Release()
		}
	}()
	if err := d.Guard(0); err != nil {
		return nil, err
	}
	if err := d.format(o.Encryption); err != nil {
		return nil, err
	}
	if d.Format.Encryption != o.Encryption {
		o.Log.Warn("a data directory stays as it was made", "encryption", d.Format.Encryption)
	}
	if err := os.MkdirAll(d.path("db"), 0o700); err != nil {
		return nil, DiskError(op, o.Dir, err)
	}
	known := knownTables(o.Dir)
	if err := checkTails(o.Dir, known); err != nil {
		return nil, err
	}
	if d.Damaged, err = setAsideDamagedLogs(o.Dir); err != nil {
		return nil, err
	}
	restore, err := d.unseal()
	if err != nil {
		return nil, err
	}
	if d.DB, err = badger.Open(d.badgerOptions(o.Log)); err != nil {
		restore() // so that a check can tell which file it is
		return nil, openError(o.Dir, err)
	}
	d.log = o.Log
	d.merge()
	if err := d.writeOpenList(known); err != nil {
		return nil, errors.Join(DiskError(op, o.Dir, err), d.DB.Close())
	}
	return d, nil
}

// unseal removes what is said of the files before they change. restore undoes it.
func (d *DB) unseal() (restore func(), err error) {
	said := map[string][]byte{}
	for _, name := range []string{sealFile, openFile} {
		b, err := os.ReadFile(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.Remove(d.path(name))
		}
		if err != nil {
			return nil, DiskError("db.Open", d.Dir, err)
		}
		said[name] = b
	}
	return func() {
		for name, b := range said {
			_ = WriteFile(d.path(name), b) // no more than a help for check
		}
	}, nil
}

func (d *DB) path(elem ...string) string { return filepath.Join(append([]string{d.Dir}, elem...)...) }

// format reads FORMAT or makes it, and finds the key.
func (d *DB) format(encryption bool) error {
	f, err := ReadFormat(d.Dir)
	if kernel.IsKind(err, kernel.NotFound) {
		if f, err = newFormat(encryption); err != nil {
			return err
		}
		if encryption {
			if d.master, err = newKey(&f); err != nil {
				return err
			}
			f.KeyCheck = keyCheck(d.master)
		}
		f.Sum = f.sum()
		d.Format = f
		if err := f.write(d.Dir); err != nil {
			return DiskError("db.format", d.Dir, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	d.Format = f
	if f.Encryption {
		d.master, err = loadKey(f)
	}
	return err
}

func (d *DB) badgerOptions(log *slog.Logger) badger.Options {
	opt := badger.DefaultOptions(d.path("db")).
		WithSyncWrites(true).
		WithMemTableSize(d.Format.Memtable).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(1 << 20). // without compactors a stall would last for ever

		WithNumCompactors(0). // idle is idle: Compact does it on demand
		WithBaseTableSize(2 << 20).
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(1 << 20).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithMetricsEnabled(false).
		WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithDetectConflicts(true).
		WithLogger(&badgerLog{log, &d.unwell})
	if d.master != nil {
		opt = opt.WithEncryptionKey(subkey(d.master, "db")).WithIndexCacheSize(1 << 20).WithBlockCacheSize(1 << 20)
	}
	return opt
}

// PackKey is the key of the pack files, nil without encryption.
func (d *DB) PackKey() []byte {
	if d.master == nil {
		return nil
	}
	return subkey(d.master, "packs")
}

// Unwell is the first error that Badger reported by logging it only.
func (d *DB) Unwell() string {
	if p := d.unwell.Load(); p != nil {
		return *p
	}
	return ""
}

// At ends the process in crash tests.
func (d *DB) At(point string) {
	if d.crash != nil {
		d.crash(point)
	}
}

// Guard refuses to write n more bytes when the disk would come near full:
// Badger maps its files, and a full disk kills the process inside it.
func (d *DB) Guard(n int64) error {
	return d.room(minFree + 4*n)
}

func (d *DB) room(want int64) error {
	got, err := d.free(d.Dir)
	if err != nil {
		return DiskError("db.Guard", d.Dir, err)
	}
	if got < want {
		return kernel.E("db.Guard", kernel.NoSpace, nil, "the disk of %s is nearly full (%d MiB free)", d.Dir, got>>20).
			WithNext("free some space (at least %d MiB) and go on; nothing is lost", want>>20)
	}
	return nil
}

// View reads in a transaction. Badger panics on some damaged tables before it
// compares a checksum: then the error is Corrupt, and the process goes on.
func (d *DB) View(f func(txn *badger.Txn) error) (err error) {
	defer Damaged(&err)
	return d.DB.View(f)
}

// Guarded runs a scan of the database for an iterator. A panic of the database
// becomes a last error, Corrupt; one of the caller's own code goes on.
func Guarded[T any](yield func(T, error) bool, scan func(yield func(T, error) bool)) {
	callers := false
	defer func() {
		if callers {
			return
		}
		if r := recover(); r != nil {
			var zero T
			yield(zero, damaged(r))
		}
	}()
	scan(func(v T, err error) bool {
		callers = true
		ok := yield(v, err)
		callers = false
		return ok
	})
}

func damaged(r any) error {
	return kernel.E("db.View", kernel.Corrupt, fmt.Errorf("%v", r), "a table of the database cannot be read").WithNext("run witan check")
}

// Damaged turns a panic out of the database into a Corrupt error; it is deferred
// around everything that reads.
func Damaged(err *error) {
	if r := recover(); r != nil {
		*err = damaged(r)
	}
}

// Commit commits a transaction and classifies its error.
func (d *DB) Commit(txn *badger.Txn) error {
	err := txn.Commit()
	switch {
	case err == nil:
		if d.commits.Add(1)%commitsEach == 0 {
			d.tidy()
		}
		return nil
	case errors.Is(err, badger.ErrConflict):
		return kernel.E("db.Commit", kernel.Conflict, err, "somebody else wrote first")
	}
	return DiskError("db.Commit", d.Dir, err)
}

// Close closes the database and seals it.
func (d *DB) Close() error {
	d.wg.Wait()
	err := d.DB.Close()
	if err == nil {
		err = writeSeal(d.Dir)
	}
	if err == nil {
		err = os.Remove(d.path(openFile))
	}
	return errors.Join(err, d.lock.Release())
}

// DiskError tells a full and a read-only disk apart from the rest. An error that
// has its kind already keeps it.
func DiskError(op, dir string, err error) error {
	var known *kernel.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return kernel.E(op, kernel.NoSpace, err, "the disk of %s is full", dir).WithNext("free some space and go on; nothing is lost")
	case errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission):
		return kernel.E(op, kernel.ReadOnly, err, "%s cannot be written", dir).WithNext("check its permissions, or use --home")
	case errors.Is(err, fs.ErrNotExist) && op == "db.Open":
		return kernel.E(op, kernel.ReadOnly, err, "%s cannot be made", dir).WithNext("use --home with another folder")
	case errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist):
		return kernel.E(op, kernel.ReadOnly, err, "%s is not a folder", dir).WithNext("use --home with a folder")
	}
	return kernel.E(op, kernel.Internal, err, "the database in %s failed", dir)
}

func openError(dir string, err error) error {
	text := err.Error()
	for _, sign := range []string{"checksum", "Checksum", "corrupt", "Encryption key mismatch", "manifest", "MANIFEST", "magic", "file does not exist", "Table", "table", "datakey"} {
		if strings.Contains(text, sign) {
			return kernel.E("db.Open", kernel.Corrupt, err, "the database in %s cannot be opened", dir).
				WithNext("run witan check; restore from a backup if it names damage; nothing was changed")
		}
	}
	return DiskError("db.Open", dir, err)
}

// badgerLog keeps Badger's errors: some of them are not returned to anybody.
type badgerLog struct {
	log    *slog.Logger
	unwell *atomic.Pointer[string]
}

func (l *badgerLog) Errorf(f string, a ...any) {
	s := strings.TrimSpace(fmt.Sprintf(f, a...))
	l.unwell.CompareAndSwap(nil, &s)
	l.log.Error("badger", "text", s)
}
func (l *badgerLog) Warningf(f string, a ...any) {
	l.log.Warn("badger", "text", strings.TrimSpace(fmt.Sprintf(f, a...)))
}
func (l *badgerLog) Infof(string, ...any)  {}
func (l *badgerLog) Debugf(string, ...any) {}
