//go:build cgo

package shot_test

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"testing"

	"witan/ui/shot"
	"witan/ui/theme"
	"witan/ui/uitest"
	"witan/ui/window"
)

// routes are the places that are drawn.
var routes = map[string]string{
	"welcome": "welcome", "settings": "settings",
	"council": "conversation/" + uitest.Council, "gate": "conversation/" + uitest.Gated,
	"article": "conversation/" + uitest.Article, "ended": "conversation/" + uitest.Ended,
	"run": "conversation/" + uitest.Council + "/run", "context": "conversation/" + uitest.Council + "/context",
	"findings": "conversation/" + uitest.Gated + "/findings", "files": "conversation/" + uitest.Gated + "/files",
}

// TestRoutesAreDrawn renders each route at four widths, both themes and both
// languages, and looks that something is drawn in the right colours. With
// WITAN_SHOTS the pictures are kept in that folder, for a person to look at.
func TestRoutesAreDrawn(t *testing.T) {
	dir := os.Getenv("WITAN_SHOTS")
	shaper := theme.NewShaper(dir != "")
	for _, size := range []image.Point{{720, 900}, {1024, 768}, {1440, 900}, {2560, 1400}} {
		cam, err := shot.New(size, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range []string{"light", "dark"} {
			for _, lang := range []string{"en", "zh-CN"} {
				u := window.New(window.Options{Theme: th, Lang: lang, Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: shaper})
				for hash, text := range uitest.Packs() {
					u.SetPack(hash, text)
				}
				for name, route := range routes {
					img := take(t, cam, u, route)
					check(t, fmt.Sprintf("%s %s %s %d", name, th, lang, size.X), img, th)
					if dir != "" {
						save(t, filepath.Join(dir, fmt.Sprintf("%s-%s-%s-%d.png", name, th, lang, size.X)), img)
					}
				}
			}
		}
		cam.Release()
	}
}

func take(t *testing.T, cam *shot.Camera, u *window.UI, route string) *image.RGBA {
	t.Helper()
	r, err := window.ParseRoute(route)
	if err != nil {
		t.Fatal(err)
	}
	u.Go(r)
	u.SetState(uitest.State(r.Conversation))
	img, err := cam.Take(uitest.Now, u.Layout)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// check looks for the ground, and for enough of what is not ground.
func check(t *testing.T, what string, img *image.RGBA, th string) {
	t.Helper()
	pal := theme.Light
	if th == "dark" {
		pal = theme.Dark
	}
	ground, other := 0, 0
	for i := 0; i < len(img.Pix); i += 4 {
		if img.Pix[i+3] != 0xff {
			t.Fatalf("%s: a pixel is not opaque", what)
		}
		switch [3]uint8(img.Pix[i : i+3]) {
		case [3]uint8{pal.Panel.R, pal.Panel.G, pal.Panel.B}, [3]uint8{pal.Background.R, pal.Background.G, pal.Background.B}:
			ground++
		default:
			other++
		}
	}
	if ground < (ground+other)/6 || other < 4000 {
		t.Errorf("%s: %d pixels of ground, %d others", what, ground, other)
	}
}

func save(t *testing.T, name string, img image.Image) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := shot.WritePNG(f, img); err != nil {
		t.Fatal(err)
	}
}
