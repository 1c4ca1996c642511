// Command catalogue runs rows of experiments/ in a running lab, and keeps their results. hack/catalogue makes the labs.
//
//	catalogue plan     which rows to run, one line for each lab that they need: folders, then variables of make, with tabs between
//	catalogue run      run one row, and write its result and the pages
//	catalogue pages    write the pages again
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:], os.Stdout)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		if interrupted { // hack/catalogue runs no further row then
			os.Exit(exitInterrupted)
		}
		os.Exit(1)
	}
}

// exitInterrupted is the exit code that shells report for a command that Ctrl-C has ended.
const exitInterrupted = 130

func start(ctx context.Context, words []string, out io.Writer) error {
	if len(words) == 0 {
		return errors.New("write plan, run or pages")
	}
	b := bench{out: out}
	flags := flag.NewFlagSet("catalogue "+words[0], flag.ContinueOnError)
	names := flags.String("rows", "", "`ROWS` such as \"S14 S20\", or short; all by default")
	var which selection
	flags.BoolVar(&which.force, "force", false, "also rows that have a result of the same experiment, overlay and disks")
	flags.BoolVar(&which.again, "again", false, "rows that have one such result, to see whether it repeats")
	flags.StringVar(&b.root, "root", ".", "`FOLDER` of the checkout")
	flags.StringVar(&b.commit, "commit", "", "`HASH` of the project")
	flags.StringVar(&b.kubectl, "kubectl", "kubectl", "`PATH` of kubectl")
	flags.StringVar(&b.plugin, "plugin", "kubectl-storagebench", "`PATH` of the plugin")
	flags.StringVar(&b.namespace, "namespace", "storagebench-demo", "`NAME` of the namespace")
	flags.DurationVar(&b.timeout, "timeout", time.Hour, "give a row up after this `DURATION`")
	if err := flags.Parse(words[1:]); err != nil {
		return err
	}
	rows, err := loadRows(b.root)
	if err != nil {
		return err
	}
	switch words[0] {
	case "plan":
		return plan(rows, *names, b.commit, which, out)
	case "run":
		chosen, err := choose(rows, *names, b.commit)
		if err != nil {
			return err
		}
		if len(chosen) != 1 {
			return errors.New("run takes one row: -rows S14")
		}
		return b.run(ctx, chosen[0])
	case "pages":
		return writePages(b.root, rows)
	}
	return fmt.Errorf("there is no command %q: write plan, run or pages", words[0])
}

// selection says which rows run besides those without a result, or instead of them.
type selection struct{ force, again bool }

// plan leaves out rows whose result is still current. The short row always runs: it tests the project.
func plan(rows []row, names, commit string, which selection, out io.Writer) error {
	chosen, err := choose(rows, names, commit)
	if err != nil {
		return err
	}
	var due []row
	for _, one := range chosen {
		wanted := !one.current()
		if which.again {
			wanted = one.current() && !one.repeated()
		}
		if wanted || which.force || names == shortName {
			due = append(due, one)
		}
	}
	for _, group := range groups(due) {
		var folders []string
		for _, one := range group.Rows {
			folders = append(folders, one.Folder)
		}
		fields := append([]string{strings.Join(folders, " ")}, group.Lab...)
		if _, err := fmt.Fprintln(out, strings.Join(fields, "\t")); err != nil {
			return err
		}
	}
	return nil
}
