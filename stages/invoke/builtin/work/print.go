package work

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"witan/kernel"
)

// maxPrint bounds the bytes that Print reads; of the files beyond, the size
// alone counts.
const maxPrint = 1 << 30

// Print names the content of the folder: two with the same files, modes and
// links have the same.
func (f *Folder) Print(ctx context.Context) (kernel.Digest, error) {
	all := sha256.New()
	left := int64(maxPrint)
	for _, file := range f.Files {
		if err := ctx.Err(); err != nil {
			return kernel.Digest{}, context.Cause(ctx)
		}
		sum := sha256.New()
		if r, err := f.Open(file.Path); err == nil && left > 0 {
			n, _ := io.Copy(sum, io.LimitReader(r, left))
			left -= n
			r.Close()
		} else if err == nil {
			r.Close()
		}
		fmt.Fprintf(all, "%q %t %d %x\n", file.Path, file.Exec, file.Size, sum.Sum(nil))
	}
	for _, l := range f.Links {
		fmt.Fprintf(all, "%q -> %q\n", l.Path, l.Target)
	}
	return kernel.Sum(all.Sum(nil)), nil
}
