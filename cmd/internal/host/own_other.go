//go:build !unix

package host

// ownedByUs has nothing to check where the temp directory is the user's own.
func ownedByUs(string) error { return nil }
