package proc

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"witan/kernel"
)

// Runner implements kernel.Runner: each command under a supervisor of its own.
type Runner struct {
	KillGrace time.Duration
	Write     []string // always writable: temporary and cache folders
	Private   string   // folder in which, and below which, what commands create is private; "" = everywhere
}

var _ kernel.Runner = Runner{}

const defaultLimit = 1 << 20

// Run implements kernel.Runner.
func (r Runner) Run(ctx context.Context, c kernel.Command) (kernel.CommandResult, error) {
	var res kernel.CommandResult
	if len(c.Argv) == 0 {
		return res, kernel.E("proc.Run", kernel.Invalid, nil, "the command is empty")
	}
	if c.Env == nil {
		c.Env = Env(nil)
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeLimit)
		defer cancel()
	}
	p, err := Start(ctx, Spec{Path: c.Argv[0], Args: c.Argv[1:], Dir: c.Dir, Env: c.Env, Confine: c.Confine,
		Write: append(append([]string{}, r.Write...), c.Write...), KillGrace: r.KillGrace,
		Shared: r.Private != "" && !Below(c.Dir, r.Private)})
	if errors.Is(err, errTimeLimit) {
		return kernel.CommandResult{Exit: -1, TimedOut: true}, nil
	}
	if err != nil {
		return res, err
	}
	if c.Limit <= 0 {
		c.Limit = defaultLimit
	}
	out, errs := &keep{limit: c.Limit}, &keep{limit: c.Limit}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(out, p.Stdout) })
	wg.Go(func() { _, _ = io.Copy(errs, p.Stderr) })
	wg.Go(func() {
		_, _ = p.Stdin.Write(c.Stdin)
		p.Stdin.Close()
	})
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Stop()
		<-p.Done()
	}
	p.Stdin.Close()
	e, err := p.Wait(context.WithoutCancel(ctx))
	if err != nil { // then somebody may hold the pipes
		p.Stdout.Close()
		p.Stderr.Close()
		wg.Wait()
		return res, err
	}
	wg.Wait() // the tree is gone, so nobody holds the pipes
	p.Stdout.Close()
	p.Stderr.Close()
	res = kernel.CommandResult{Exit: e.Code, Stdout: out.bytes(), Stderr: errs.bytes(), Cut: out.cut() + errs.cut(),
		TimedOut: errors.Is(context.Cause(ctx), errTimeLimit)}
	return res, nil
}

var errTimeLimit = errors.New("time limit")

// keep holds the head and the tail of a stream.
type keep struct {
	limit int64
	head  []byte
	tail  []byte
	total int64
}

func (k *keep) Write(b []byte) (int, error) {
	n := len(b)
	k.total += int64(n)
	half := k.limit / 2
	if room := half - int64(len(k.head)); room > 0 {
		m := min(int64(len(b)), room)
		k.head, b = append(k.head, b[:m]...), b[m:]
	}
	k.tail = append(k.tail, b...)
	if over := int64(len(k.tail)) - (k.limit - half); over > k.limit { // move seldom
		k.tail = append(k.tail[:0], k.tail[over:]...)
	}
	return n, nil
}

func (k *keep) trim() []byte {
	if over := int64(len(k.tail)) - (k.limit - k.limit/2); over > 0 {
		return k.tail[over:]
	}
	return k.tail
}

func (k *keep) cut() int64    { return k.total - int64(len(k.head)) - int64(len(k.trim())) }
func (k *keep) bytes() []byte { return append(k.head[:len(k.head):len(k.head)], k.trim()...) }
