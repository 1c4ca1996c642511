//go:build linux

// The runner executes one phase of a storage benchmark: the phase of its pod, or one from a file. It prints progress, the result
// document and a receipt for it; docs/reference/runner.md describes the formats and the exit codes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/storagebench/storagebench/internal/runner"
	"github.com/storagebench/storagebench/internal/workload"
	"github.com/storagebench/storagebench/internal/workload/engine"
)

// version is set by the linker.
var version = "dev"

// maxRequestBytes is far more than a request with the longest job file needs.
const maxRequestBytes = 1 << 20

func main() { os.Exit(run()) }

func run() int {
	file := flag.String("request", "", "read the request from `FILE`, - is the standard input (default: the variable "+
		workload.RequestVariable+")")
	termination := flag.String("termination-log", "/dev/termination-log", "write the receipt to `FILE`, if it exists")
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return runner.ExitValid
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	one := runner.Runner{Executor: engine.Executor{}, Log: os.Stdout, TerminationLog: *termination}
	request, err := readRequest(*file)
	if err != nil {
		return one.Fail(runner.ExitUsage, err)
	}
	return one.Run(ctx, request)
}

func readRequest(file string) (workload.Request, error) {
	switch {
	case flag.NArg() > 0:
		return workload.Request{}, fmt.Errorf("unexpected argument %q: see runner --help", flag.Arg(0))
	case file == "":
		text, found := os.LookupEnv(workload.RequestVariable)
		if !found {
			return workload.Request{}, errors.New("there is no request: set " + workload.RequestVariable + ", or give --request FILE")
		}
		return workload.DecodeRequest(text)
	}
	input := os.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return workload.Request{}, fmt.Errorf("read the request: %w", err)
		}
		defer func() { _ = opened.Close() }()
		input = opened
	}
	text, err := io.ReadAll(io.LimitReader(input, maxRequestBytes))
	if err != nil {
		return workload.Request{}, fmt.Errorf("read the request from %s: %w", file, err)
	}
	return workload.DecodeRequest(string(text))
}
