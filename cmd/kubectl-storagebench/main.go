// kubectl-storagebench runs storage benchmarks, in a cluster or on this machine. If it is in the PATH, it is also available as kubectl
// storagebench.
package main

import (
	"context"
	"os"
	"time"
	_ "time/tzdata" // validate needs the time zones of schedules, even on a machine without tzdata

	"golang.org/x/term"

	"github.com/storagebench/storagebench/internal/cli"
)

// version is set by the linker for a release.
var version string

func main() {
	app := &cli.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: terminal, Colour: os.Getenv("NO_COLOR") == "",
		Now: time.Now, Version: version, Local: local(),
	}
	os.Exit(app.Main(context.Background(), os.Args[1:]))
}

// terminal returns the size of the standard output, and whether it is a terminal with cursor control.
func terminal() (columns, rows int, is bool) {
	output := int(os.Stdout.Fd())
	if !term.IsTerminal(output) || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(output)
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24, true
	}
	return columns, rows, true
}
