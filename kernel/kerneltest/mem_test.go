package kerneltest_test

import (
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
)

func TestMemLedger(t *testing.T) {
	kerneltest.TestLedger(t, func(*testing.T) kernel.Ledger { return kerneltest.NewMem() })
}

func TestMemPacks(t *testing.T) {
	kerneltest.TestPacks(t, func(*testing.T) kernel.Packs { return kerneltest.NewMem() })
	kerneltest.TestStatCache(t, func(*testing.T) kernel.StatCache { return kerneltest.NewMem() })
}

func TestMemConversations(t *testing.T) {
	kerneltest.TestConversations(t, func(*testing.T) kernel.Conversations { return kerneltest.NewMem() })
	kerneltest.TestStreams(t, func(*testing.T) kernel.Streams { return kerneltest.NewMem() })
}

func TestMemQueue(t *testing.T) {
	kerneltest.TestQueue(t, func(*testing.T) kerneltest.QueueStore {
		m := kerneltest.NewMem()
		return kerneltest.QueueStore{Queue: m, Conversations: m}
	})
}
