//go:build cgo

package shot_test

import (
	"flag"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"witan/ui/shot"
	"witan/ui/theme"
	"witan/ui/uitest"
	"witan/ui/window"
)

var update = flag.Bool("update", false, "write the pictures that are compared with")

// A pixel differs if one of its colours does by more than delta, which leaves room
// for the edges that another renderer draws; so many of 10,000 may.
const (
	delta   = 64
	allowed = 20
)

// TestPictures compares places of the window with pictures of them that a person
// looked at. They use the embedded fonts only. go test ./ui/shot -update writes
// them anew.
func TestPictures(t *testing.T) {
	cam, err := shot.New(image.Pt(1280, 800), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer cam.Release()
	shaper := theme.NewShaper(false)
	for _, th := range []string{"light", "dark"} {
		u := window.New(window.Options{Theme: th, Lang: "en", Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: shaper})
		for hash, text := range uitest.Packs() {
			u.SetPack(hash, text)
		}
		for _, name := range []string{"welcome", "settings", "run", "findings", "context", "ended"} {
			got := take(t, cam, u, routes[name])
			file := filepath.Join("testdata", name+"-"+th+".png")
			if *update {
				write(t, file, got)
				continue
			}
			if n := differ(t, file, got); n > allowed {
				failed := filepath.Join(t.ArtifactDir(), name+"-"+th+".png")
				save(t, failed, got)
				t.Errorf("%s: %d of 10,000 pixels differ; what was drawn is in %s", file, n, failed)
			}
		}
	}
}

func write(t *testing.T, file string, img image.Image) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	enc := png.Encoder{CompressionLevel: png.BestCompression}
	if err := enc.Encode(f, img); err != nil {
		t.Fatal(err)
	}
}

// differ is how many of 10,000 pixels are not as in a file.
func differ(t *testing.T, file string, got *image.RGBA) int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	b := got.Bounds()
	if want.Bounds() != b {
		t.Fatalf("%s is %v, drawn was %v", file, want.Bounds(), b)
	}
	n := 0
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := want.At(x, y).RGBA()
			c := got.RGBAAt(x, y)
			if far(r, c.R) || far(g, c.G) || far(bl, c.B) {
				n++
			}
		}
	}
	return n * 10000 / (b.Dx() * b.Dy())
}

func far(a uint32, b uint8) bool {
	d := int(a>>8) - int(b)
	return d > delta || d < -delta
}
