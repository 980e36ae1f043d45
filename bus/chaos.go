package bus

import (
	"context"
	"math/rand/v2"
	"sync"

	"witan/kernel"
)

// ChaosOptions are the shares of signals, 0 to 1, that a Chaos bus mistreats.
type ChaosOptions struct{ Drop, Double, Shuffle float64 }

// Chaos mistreats the signals of a bus, to show that nothing depends on them:
// it drops some, sends some twice and holds some back behind later ones. Equal
// seeds and equal publishes give equal mistreatment. Unlike a real bus it
// returns nil for what it drops.
func Chaos(b kernel.Bus, seed uint64, opt ChaosOptions) kernel.Bus {
	return &chaos{Bus: b, opt: opt, rnd: rand.New(rand.NewPCG(seed, 1))}
}

type chaos struct {
	kernel.Bus
	opt  ChaosOptions
	mu   sync.Mutex
	rnd  *rand.Rand     // guarded by mu
	held *kernel.Signal // guarded by mu
}

func (c *chaos) Publish(ctx context.Context, s kernel.Signal) error {
	for _, sig := range c.plan(s) {
		if err := c.Bus.Publish(ctx, sig); err != nil {
			return err
		}
	}
	return nil
}

// plan is what to send in place of s.
func (c *chaos) plan(s kernel.Signal) []kernel.Signal {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []kernel.Signal
	switch x := c.rnd.Float64(); {
	case x < c.opt.Drop:
	case x < c.opt.Drop+c.opt.Double:
		out = append(out, s, s)
	case x < c.opt.Drop+c.opt.Double+c.opt.Shuffle && c.held == nil:
		c.held = &s
		return nil
	default:
		out = append(out, s)
	}
	if c.held != nil && len(out) > 0 {
		out = append(out, *c.held)
		c.held = nil
	}
	return out
}

// Close counts a signal that is still held back.
func (c *chaos) Close(ctx context.Context) (int, error) {
	left, err := c.Bus.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		left++
	}
	return left, err
}

// Stopped accepts signals, closed or not, and delivers none: a host on it must
// not advance.
func Stopped(b kernel.Bus) kernel.Bus { return stopped{b} }

type stopped struct{ kernel.Bus }

func (stopped) Publish(context.Context, kernel.Signal) error { return nil }
