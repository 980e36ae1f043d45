//go:build !windows && !cgo

package shot

import (
	"image"
	"io"
	"time"

	"gioui.org/layout"

	"witan/kernel"
)

// Camera renders nothing in a program that was built for the terminal only.
type Camera struct{}

// New says that no picture can be made.
func New(image.Point, float32) (*Camera, error) {
	return nil, kernel.E("shot.New", kernel.Unsupported, nil, "pictures are not in this version, which was built for the terminal only").
		WithNext("use a version with the window")
}

// Take is never called: there is no camera.
func (*Camera) Take(time.Time, layout.Widget) (*image.RGBA, error) { return nil, nil }

// Release frees nothing.
func (*Camera) Release() {}

// WritePNG writes nothing.
func WritePNG(io.Writer, image.Image) error { return nil }
