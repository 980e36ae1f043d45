package stores

import (
	"context"
	"errors"
	"log/slog"

	"witan/stores/conversations"
	"witan/stores/db"
	"witan/stores/ledger"
	"witan/stores/packs"
)

// Options of Open; see db.Options.
type Options struct {
	Dir        string
	Encryption bool
	Log        *slog.Logger
	Free       func(dir string) (int64, error)
	Crash      func(point string)
}

// Store is an open data directory.
type Store struct {
	DB            *db.DB
	Ledger        *ledger.Ledger
	Packs         *packs.Store
	Conversations *conversations.Store
}

// Open opens the data directory and takes its lock; see db.Open for errors.
func Open(ctx context.Context, o Options) (*Store, error) {
	d, err := db.Open(ctx, db.Options{Dir: o.Dir, Encryption: o.Encryption, Log: o.Log, Free: o.Free, Crash: o.Crash})
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	p, err := packs.Open(packs.Options{DB: d, Key: d.PackKey(), Log: o.Log, Crash: o.Crash})
	if err != nil {
		return nil, errors.Join(err, l.Close(), d.Close())
	}
	return &Store{DB: d, Ledger: l, Packs: p, Conversations: conversations.Open(d)}, nil
}

// Close closes everything and seals the database.
func (s *Store) Close() error { return errors.Join(s.Ledger.Close(), s.DB.Close()) }

// Compact gives back the space of deleted and outdated entries; sizes in bytes.
func (s *Store) Compact() (before, after int64, err error) { return s.DB.Compact() }
