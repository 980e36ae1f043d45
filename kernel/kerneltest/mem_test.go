package kerneltest_test

import (
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
)

func TestMemLedger(t *testing.T) {
	kerneltest.TestLedger(t, func(*testing.T) kernel.Ledger { return kerneltest.NewMem() })
}
