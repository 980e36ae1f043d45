package stores_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"witan/kernel"
	"witan/kernel/kerneltest"
	"witan/stores"
)

// TestBackupLive: a backup that is taken while runs go on holds every run as it
// was at one moment, with the packs it names.
func TestBackupLive(t *testing.T) {
	keyed(t)
	ctx, stop := context.WithCancel(context.Background())
	s := fresh(t, true)
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for w := range 4 {
		wg.Go(func() {
			var head kernel.Head
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := s.Packs.Put(context.Background(), "text", fmt.Append(nil, w, i)); err != nil {
					t.Error(err)
					return
				}
				h, _, err := s.Ledger.Append(context.Background(), kerneltest.Batch(kerneltest.Run(w), head, 1, "text"))
				if err != nil {
					t.Error(err)
					return
				}
				if head = h; i == 20 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	var files []string
	for i := range 8 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if _, _, err := s.Backup(ctx, files[i]); err != nil {
			t.Error(err)
		}
	}
	stop()
	wg.Wait()
	for _, file := range files {
		dir := filepath.Join(t.TempDir(), "restored")
		if err := stores.Restore(context.Background(), file, dir); err != nil {
			t.Fatal(err)
		}
		damaged, checked, err := stores.Check(context.Background(), dir, func(r stores.CheckRow) error { t.Errorf("%+v", r); return nil })
		if err != nil || damaged > 0 || checked < 80 {
			t.Fatalf("%d damages of %d: %v", damaged, checked, err)
		}
	}
}
