//go:build !unix

package isolation

// lock does nothing: git is asked again where somebody was in its way.
func lock(repository string) (unlock func()) { return func() {} }
