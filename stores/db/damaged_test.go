package db_test

import (
	"testing"

	"witan/kernel"
	"witan/stores/db"
)

// A panic of the database is an error of the scan; one of the caller's own code
// is the caller's.
func TestGuarded(t *testing.T) {
	var got []int
	var last error
	for v, err := range func(yield func(int, error) bool) {
		db.Guarded(yield, func(yield func(int, error) bool) {
			yield(1, nil)
			panic("slice bounds out of range")
		})
	} {
		got, last = append(got, v), err
	}
	if len(got) != 2 || !kernel.IsKind(last, kernel.Corrupt) {
		t.Errorf("%v, %v", got, last)
	}
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v", r)
		}
	}()
	for range func(yield func(int, error) bool) {
		db.Guarded(yield, func(yield func(int, error) bool) { yield(1, nil) })
	} {
		panic("mine")
	}
}
