package invoke

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"witan/kernel"
	"witan/kernel/tree"
)

// Bounds of what is taken from a turn's output folder; the rest stays where it is.
const (
	maxFiles     = 64
	maxFileBytes = 16 << 20
	maxEntries   = 4096 // looked at
)

// output stores the regular files that a turn left in its output folder. Links
// are not followed, and what cannot be read is left out.
func output(ctx context.Context, p kernel.Packs, dir string) ([]kernel.OutputFile, error) {
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil // there is none: nothing was handed over
	}
	defer root.Close()
	var out []kernel.OutputFile
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		seen++
		if seen > maxEntries || len(out) == maxFiles {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > maxFileBytes {
			return nil
		}
		b, err := root.ReadFile(filepath.FromSlash(path))
		if err != nil || len(b) > maxFileBytes {
			return nil
		}
		h, err := p.Put(ctx, "artifact", b)
		if err != nil {
			return err
		}
		out = append(out, kernel.OutputFile{Path: tree.EncodePath(path), Hash: h, Bytes: int64(len(b))})
		return nil
	})
	return out, err
}
