package db

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/dgraph-io/badger/v4"

	"witan/kernel"
)

// A dump is every key and its value as of one moment, each with its length as a
// varint before it. (Badger's own backup reads at several moments, so it could
// hold a run's head without its last record.)

// Bounds of what is stored; a dump that says more is damaged.
const (
	mostKey   = 1 << 16
	mostValue = 2 << 20
)

// Dump writes what is committed when it begins. Writers are not held up. A
// database with a damaged table is Corrupt: a part would be left out silently.
func (d *DB) Dump(ctx context.Context, w io.Writer) error {
	if why := d.CheckTables(); why != "" {
		return kernel.E("db.Dump", kernel.Corrupt, nil, "%s", why).WithNext("run witan check; keep a copy of %s and an older backup", d.Dir)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	err := d.DB.View(func(txn *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		o.PrefetchValues = false
		it := txn.NewIterator(o)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := putBytes(out, it.Item().Key()); err != nil {
				return err
			}
			if err := it.Item().Value(func(b []byte) error { return putBytes(out, b) }); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

func putBytes(w io.Writer, b []byte) error {
	if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// Fill writes a dump into an empty database.
func (d *DB) Fill(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	batch := d.NewWriteBatch()
	defer batch.Cancel()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, err := takeBytes(in, mostKey)
		if errors.Is(err, io.EOF) {
			return batch.Flush()
		}
		if err != nil {
			return err
		}
		value, err := takeBytes(in, mostValue)
		if err != nil {
			return ErrStream
		}
		if err := batch.Set(key, value); err != nil {
			return err
		}
	}
}

// takeBytes gives io.EOF only where nothing follows.
func takeBytes(r *bufio.Reader, most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil || n > most {
		return nil, ErrStream
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, ErrStream
	}
	return b, nil
}
