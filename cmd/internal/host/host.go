package host

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"witan/bus"
	"witan/cmd/internal/config"
	"witan/kernel"
	"witan/kernel/engine"
	"witan/kernel/plans"
	"witan/stores"
)

// Options of Open.
type Options struct {
	Home    string // absolute
	Config  string // file; "" = config.toml in Home
	Version string
	Serving bool // a long-lived host: resumes read-only runs by itself
	Log     *slog.Logger
}

// Host owns a data directory.
type Host struct {
	opts     Options
	cfg      config.Config
	store    *stores.Store
	engine   *engine.Engine
	agents   []*member
	control  kernel.Bus
	view     kernel.Bus
	server   *server
	tools    *toolbox
	drain    *drain // nil in a host that may end at any time
	reaped   int    // processes that outlived it
	instance string
}

// systemClock is the time of this machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
func (systemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// Open takes the data directory, finishes what a dead host left behind, and
// listens. Close must be called.
func Open(ctx context.Context, o Options) (_ *Host, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{opts: o}
	if h.cfg, err = loadConfig(o); err != nil {
		return nil, err
	}
	testing, err := readTestHooks()
	if err != nil {
		return nil, err
	}
	if h.store, err = stores.Open(ctx, stores.Options{Dir: o.Home, Encryption: h.cfg.Encryption, Log: o.Log, Crash: testing.crash}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.release(ctx))
		}
	}()
	if h.instance, err = testing.newID("host_"); err != nil {
		return nil, err
	}
	h.control, h.view = testing.bus(bus.NewControl()), testing.bus(bus.NewView())
	if h.agents, err = h.members_(); err != nil {
		return nil, err
	}
	h.tools = newToolbox(h)
	h.engine = engine.New(engine.Deps{Ledger: h.store.Ledger, Packs: h.store.Packs, Conversations: h.store.Conversations,
		Streams: h.store.Conversations, Control: h.control, View: h.view, Registry: h.registry(), Plans: Plans(), Clock: systemClock{},
		NewID: testing.newID, Log: o.Log, Instance: h.instance, BeforeAppend: testing.beforeAppend,
		Output: func(r kernel.RunID) string { return filepath.Join(o.Home, "output", string(r)) }})
	h.reaped = h.reapSurvivors(ctx)
	if _, err = h.engine.Start(ctx); err != nil {
		return nil, err
	}
	h.tidyPlaces(ctx)
	h.settleQueues(ctx)
	if o.Serving {
		h.drain = newDrain(h)
	}
	if h.server, err = h.listen(); err != nil {
		return nil, err
	}
	if o.Serving {
		h.resumeReadOnly(ctx)
	}
	return h, nil
}

func loadConfig(o Options) (config.Config, error) {
	if o.Config != "" {
		return config.Load(o.Config, true)
	}
	return config.Load(filepath.Join(o.Home, "config.toml"), false)
}

// Plans is the one list of plans.
func Plans() plans.List {
	return plans.List{plans.Direct{}, plans.Batch{}, plans.Discuss{}, plans.Council{}}
}

// resumeWithin bounds what a long-lived host takes up again by itself: work
// that was interrupted long ago may not be wanted any more.
const resumeWithin = 24 * time.Hour

// resumeReadOnly lets runs go on that lost their host and write nothing, whoever
// found that out.
func (h *Host) resumeReadOnly(ctx context.Context) {
	var ids []kernel.RunID
	for s, err := range h.store.Ledger.Summaries(ctx) {
		if err != nil {
			h.opts.Log.Error("runs not listed", "err", err)
			break
		}
		if s.Status == kernel.RunInterruptedSt && s.Finished != nil && time.Since(*s.Finished) < resumeWithin {
			ids = append(ids, s.Run)
		}
	}
	for _, id := range ids {
		s, _, err := h.engine.Load(ctx, id)
		if err != nil || s.Created.Permission != "read-only" {
			continue
		}
		if err := h.engine.Reopen(ctx, id, kernel.ResumedBody{By: "start-up"}); err != nil {
			h.opts.Log.Error("run not resumed", "run", id, "err", err)
		}
	}
}

const (
	lingerTime = 10 * time.Minute // for others whose run this host works on
	closeTime  = 20 * time.Second // for interrupted runs to be recorded
)

// Close waits for the connections that this host still serves, unless it is a
// long-lived one that was told to end, then interrupts what runs and releases
// the data directory.
func (h *Host) Close() error {
	if h.server != nil && !h.opts.Serving {
		ctx, cancel := context.WithTimeout(context.Background(), lingerTime)
		h.server.linger(ctx)
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return h.release(ctx)
}

func (h *Host) release(ctx context.Context) error {
	var errs []error
	h.drain.close()
	if h.engine != nil {
		errs = append(errs, h.engine.Close(ctx))
	}
	if h.server != nil {
		h.server.close()
	}
	for _, m := range h.agents {
		errs = append(errs, m.invoker.Close())
	}
	for _, b := range []kernel.Bus{h.control, h.view} {
		if b != nil {
			_, err := b.Close(ctx)
			errs = append(errs, err)
		}
	}
	errs = append(errs, h.tools.close(), h.store.Close())
	return errors.Join(errs...)
}

// folder is a private folder below the data directory.
func (h *Host) folder(elem ...string) (string, error) {
	dir := filepath.Join(append([]string{h.opts.Home}, elem...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", kernel.E("host.folder", kernel.ReadOnly, err, "%s cannot be made", dir).WithNext("check the permissions of %s", h.opts.Home)
	}
	return dir, nil
}
