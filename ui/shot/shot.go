//go:build cgo || windows

package shot

import (
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"runtime"
	"time"

	"gioui.org/gpu/headless"
	"gioui.org/io/input"
	"gioui.org/layout"
	"gioui.org/op"
	"gioui.org/unit"
)

// Camera renders frames of one size. It must be used by the goroutine that made
// it and be released.
type Camera struct {
	win    *headless.Window
	size   image.Point
	router input.Router
	ops    op.Ops
	scale  float32
}

// New returns a camera. Where no display is there, the software renderer is used.
func New(size image.Point, scale float32) (*Camera, error) {
	if size.X < 1 || size.Y < 1 || size.X > 8192 || size.Y > 8192 {
		return nil, errors.New("a picture is 1 to 8192 pixels wide and high")
	}
	runtime.LockOSThread()
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" && os.Getenv("EGL_PLATFORM") == "" {
		// Mesa then needs no display server at all.
		if err := os.Setenv("EGL_PLATFORM", "surfaceless"); err != nil {
			return nil, err
		}
	}
	w, err := headless.NewWindow(size.X, size.Y)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return &Camera{win: w, size: size, scale: scale}, nil
}

// Take draws w until it asks for no further frame at once, at most a few times,
// and returns the picture.
func (c *Camera) Take(now time.Time, w layout.Widget) (*image.RGBA, error) {
	for range 6 {
		c.ops.Reset()
		w(layout.Context{
			Constraints: layout.Exact(c.size), Metric: unit.Metric{PxPerDp: c.scale, PxPerSp: c.scale},
			Now: now, Source: c.router.Source(), Ops: &c.ops,
		})
		c.router.Frame(&c.ops)
		if at, ok := c.router.WakeupTime(); !ok || at.After(now) {
			break
		}
	}
	if err := c.win.Frame(&c.ops); err != nil {
		return nil, err
	}
	img := image.NewRGBA(image.Rectangle{Max: c.size})
	if err := c.win.Screenshot(img); err != nil {
		return nil, err
	}
	return img, nil
}

// Release frees the renderer.
func (c *Camera) Release() {
	c.win.Release()
	runtime.UnlockOSThread()
}

// WritePNG encodes a picture.
func WritePNG(w io.Writer, img image.Image) error {
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	return enc.Encode(w, img)
}
