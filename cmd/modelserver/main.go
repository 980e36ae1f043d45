// Command modelserver runs the scripted model provider on its own, for tests
// that start real agents. It prints its base URL and serves until its standard
// input ends or it is interrupted, so that it does not outlive its parent.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"witan/cmd/internal/modelserver"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "loopback `address` to listen on")
	scenario := flag.String("scenario", "", "scenario `file` (JSON)")
	log := flag.String("log", "", "append a JSON line for each request to this `file`")
	flag.Parse()
	if err := run(*addr, *scenario, *log); err != nil {
		fmt.Fprintln(os.Stderr, "modelserver:", err)
		os.Exit(1)
	}
}

func run(addr, scenario, logFile string) error {
	if scenario == "" {
		return fmt.Errorf("no scenario (give one with -scenario FILE)")
	}
	b, err := os.ReadFile(scenario)
	if err != nil {
		return err
	}
	s, err := modelserver.Parse(b)
	if err != nil {
		return fmt.Errorf("%s: %w", scenario, err)
	}
	log := io.Discard
	if logFile != "" {
		f, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		log = f
	}
	var mu sync.Mutex
	srv, err := modelserver.Start(addr, s, func(e modelserver.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		json.NewEncoder(log).Encode(e)
	})
	if err != nil {
		return err
	}
	fmt.Println(srv.URL())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	<-ctx.Done()
	return srv.Close()
}
