package turn

import (
	"os"
	"path/filepath"
)

// Resolve gives the path a file system would end at, also for what is not there
// yet: of the deepest part that is, and of a link that leads to nothing.
func Resolve(dir, path string) string {
	const maxLinks = 40
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	rest, links := "", 0
	for at := path; ; {
		if r, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(r, rest)
		}
		if to, err := os.Readlink(at); err == nil && links < maxLinks {
			links++
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			at = filepath.Clean(to)
			continue
		}
		up := filepath.Dir(at)
		if up == at {
			return path
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}
