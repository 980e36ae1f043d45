package cli

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"witan/cmd/internal/client"
	"witan/cmd/internal/desk"
	"witan/kernel"
	"witan/ui/session"
	"witan/ui/shell"
	"witan/ui/shot"
	"witan/ui/theme"
	"witan/ui/window"
)

type uiFlags struct{ screenshot, size, theme, lang, route string }

func (a *app) uiCmd() *cobra.Command {
	var f uiFlags
	c := &cobra.Command{Use: "ui", Short: "Open the window, or render one place of it to a picture", Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.theme != "" && f.theme != "light" && f.theme != "dark" {
				return usage("--theme %q is unknown", "use light or dark", f.theme)
			}
			if f.lang != "" && f.lang != "en" && f.lang != "zh-CN" {
				return usage("--lang %q is unknown", "use en or zh-CN", f.lang)
			}
			if f.route != "" {
				if _, err := window.ParseRoute(f.route); err != nil {
					return kernel.E("cli", kernel.Invalid, err, "--route cannot be used")
				}
			}
			if f.screenshot != "" {
				return a.screenshot(c.Context(), f)
			}
			return a.window(c.Context(), f)
		}}
	fl := c.Flags()
	fl.StringVar(&f.screenshot, "screenshot", "", "render to this PNG file, without a display, and exit")
	fl.StringVar(&f.size, "size", "1280x800", "of the picture, WIDTHxHEIGHT in pixels")
	fl.StringVar(&f.theme, "theme", "", "light or dark")
	fl.StringVar(&f.lang, "lang", "", "en or zh-CN")
	fl.StringVar(&f.route, "route", "", "welcome, settings, agents, conversation/ID or conversation/ID/TAB (run, context, findings, files)")
	return c
}

// display reports whether there is a screen to open a window on.
func display() bool {
	switch {
	case !shell.Available:
		return false
	case runtime.GOOS == "windows" || os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "":
		return true
	}
	return runtime.GOOS == "darwin"
}

// locale is the language of the system.
func locale() string {
	for _, k := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := os.Getenv(k); v != "" {
			return v
		}
	}
	return "en"
}

// window opens the window over a host that outlives it, so that closing it never
// touches a run.
func (a *app) window(ctx context.Context, f uiFlags) error {
	if !display() {
		if !shell.Available {
			return shell.Run(ctx, shell.Options{})
		}
		return kernel.E("cli", kernel.Unavailable, nil, "there is no display for a window").WithNext("set DISPLAY or WAYLAND_DISPLAY, or use the terminal: witan help")
	}
	dir, err := a.dataDir()
	if err != nil {
		return err
	}
	if err := a.ensureServing(ctx); err != nil {
		return err
	}
	c, err := client.Dial(ctx, dir, Version)
	if err != nil {
		return err
	}
	p := desk.LoadPrefs(dir)
	if f.theme != "" {
		p.Theme = f.theme
	}
	if f.lang != "" {
		p.Lang = f.lang
	} else if p.Lang == "" {
		p.Lang = locale()
	}
	var kept error
	home, _ := os.UserHomeDir() // only shortens paths that are shown
	err = shell.Run(ctx, shell.Options{Source: desk.Source{Host: c}, Home: home, Folder: workFolder(), Route: f.route, Prefs: p,
		Keep: func(p shell.Prefs) { kept = desk.SavePrefs(dir, p) }})
	return errors.Join(err, kept)
}

// workFolder is where a new conversation works at first.
func workFolder() string {
	dir, err := os.Getwd()
	if err != nil || dir == string(filepath.Separator) {
		dir, _ = os.UserHomeDir() // "" then: the person names one
	}
	return dir
}

// screenshot renders one place of the window over the data directory.
func (a *app) screenshot(ctx context.Context, f uiFlags) (err error) {
	var size image.Point
	if n, err := fmt.Sscanf(f.size+"\n", "%dx%d\n", &size.X, &size.Y); n != 2 || err != nil || size.X < 200 || size.Y < 200 || size.X > 8192 || size.Y > 8192 {
		return usage("--size %q is no size", "use WIDTHxHEIGHT, 200 to 8192 pixels each", f.size)
	}
	if f.route == "" {
		f.route = "welcome"
	}
	r, err := window.ParseRoute(f.route)
	if err != nil {
		return err
	}
	c, done, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	src := desk.Source{Host: c}
	home, _ := os.UserHomeDir() // only shortens paths that are shown
	st, err := session.Load(ctx, src, home, r.Conversation)
	if err != nil {
		return err
	}
	cam, err := shot.New(size, 1)
	if kernel.IsKind(err, kernel.Unsupported) {
		return err
	}
	if err != nil {
		return kernel.E("cli", kernel.Unavailable, err, "no picture can be rendered here").WithNext("install a graphics driver, for instance Mesa's")
	}
	defer cam.Release()
	var wanted []string
	u := window.New(window.Options{Theme: f.theme, Lang: f.lang, Folder: workFolder(), Shaper: theme.NewShaper(true),
		Hooks: window.Hooks{Fetch: func(hash string) { wanted = append(wanted, hash) }}})
	u.Go(r)
	u.SetState(st)
	now := time.Now()
	img, err := cam.Take(now, u.Layout)
	if err == nil && len(wanted) > 0 { // what is shown of packs
		for _, h := range wanted {
			b, err := src.Pack(ctx, h, 64<<10)
			if err != nil {
				return err
			}
			u.SetPack(h, string(b))
		}
		img, err = cam.Take(now, u.Layout)
	}
	if err != nil {
		return kernel.E("cli", kernel.Unavailable, err, "the picture cannot be rendered")
	}
	return writePicture(f.screenshot, img)
}

func writePicture(name string, img image.Image) error {
	file, err := os.Create(name)
	if err != nil {
		return kernel.E("cli", kernel.Invalid, err, "the picture cannot be written")
	}
	err = errors.Join(shot.WritePNG(file, img), file.Close())
	if err != nil {
		return kernel.E("cli", kernel.Invalid, err, "the picture cannot be written")
	}
	return nil
}
