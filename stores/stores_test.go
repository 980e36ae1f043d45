package stores_test

import (
	"context"
	"path/filepath"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// modes are the two kinds of data directories.
var modes = map[string]bool{"plain": false, "encrypted": true}

// keyed points the key of encrypted histories at a file of the test.
func keyed(t testing.TB) {
	t.Helper()
	t.Setenv("WITAN_KEY_FILE", filepath.Join(t.TempDir(), "key"))
}

func open(t testing.TB, o stores.Options) *stores.Store {
	t.Helper()
	s, err := stores.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh opens a new data directory that is closed with the test.
func fresh(t testing.TB, encryption bool) *stores.Store {
	t.Helper()
	s := open(t, stores.Options{Dir: t.TempDir(), Encryption: encryption})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConformance(t *testing.T) {
	for mode, encryption := range modes {
		t.Run(mode, func(t *testing.T) {
			keyed(t)
			t.Run("ledger", func(t *testing.T) {
				kerneltest.TestLedger(t, func(t *testing.T) kernel.Ledger { return fresh(t, encryption).Ledger })
			})
			t.Run("packs", func(t *testing.T) {
				kerneltest.TestPacks(t, func(t *testing.T) kernel.Packs { return fresh(t, encryption).Packs })
			})
			t.Run("conversations", func(t *testing.T) {
				kerneltest.TestConversations(t, func(t *testing.T) kernel.Conversations { return fresh(t, encryption).Conversations })
			})
			t.Run("queue", func(t *testing.T) {
				kerneltest.TestQueue(t, func(t *testing.T) kerneltest.QueueStore {
					c := fresh(t, encryption).Conversations
					return kerneltest.QueueStore{Queue: c, Conversations: c}
				})
			})
			t.Run("streams", func(t *testing.T) {
				kerneltest.TestStreams(t, func(t *testing.T) kernel.Streams { return fresh(t, encryption).Conversations })
			})
			t.Run("stat cache", func(t *testing.T) {
				kerneltest.TestStatCache(t, func(t *testing.T) kernel.StatCache { return fresh(t, encryption).Packs })
			})
		})
	}
}
