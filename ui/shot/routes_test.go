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

func TestPictures(t *testing.T) {
	dir := os.Getenv("WITAN_SHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	for _, size := range []image.Point{{1280, 800}, {720, 900}, {1440, 900}} {
		cam, err := shot.New(size, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range []string{"light", "dark"} {
			for _, lang := range []string{"en"} {
				for name, route := range map[string]string{"welcome": "welcome", "settings": "settings", "council": "conversation/" + uitest.Council + "/run",
					"gate": "conversation/" + uitest.Gated + "/findings", "article": "conversation/" + uitest.Article, "context": "conversation/" + uitest.Council + "/context", "files": "conversation/" + uitest.Gated + "/files", "ended": "conversation/" + uitest.Ended} {
					r, err := window.ParseRoute(route)
					if err != nil {
						t.Fatal(err)
					}
					if size.X < 1180 {
						r.Inspect = false
					}
					u := window.New(window.Options{Theme: th, Lang: lang, Now: uitest.Clock, Zone: uitest.Now.Location(), Shaper: theme.NewShaper(true)})
					u.Go(r)
					u.SetState(uitest.State(r.Conversation))
					for h, s := range uitest.Packs() {
						u.SetPack(h, s)
					}
					img, err := cam.Take(uitest.Now, u.Layout)
					if err != nil {
						t.Fatal(err)
					}
					f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%s-%s-%d.png", name, th, lang, size.X)))
					if err != nil {
						t.Fatal(err)
					}
					if err := shot.WritePNG(f, img); err != nil {
						t.Fatal(err)
					}
					f.Close()
				}
			}
		}
		cam.Release()
	}
}
