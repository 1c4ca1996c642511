// Command catalogue runs rows of experiments/ in a lab that is up, and keeps what they showed. hack/catalogue makes the labs.
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

// exitInterrupted is what shells say of a command that Ctrl-C has ended.
const exitInterrupted = 130

func start(ctx context.Context, words []string, out io.Writer) error {
	if len(words) == 0 {
		return errors.New("write plan, run or pages")
	}
	b := bench{out: out}
	flags := flag.NewFlagSet("catalogue "+words[0], flag.ContinueOnError)
	names := flags.String("rows", "", "`ROWS` such as \"S14 S20\", or short; all by default")
	force := flags.Bool("force", false, "also rows that have a result of the same experiment, overlay and disks")
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
		return plan(rows, *names, b.commit, *force, out)
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

// plan leaves out rows whose result is of what they are now. The short row always runs: it tests the project.
func plan(rows []row, names, commit string, force bool, out io.Writer) error {
	chosen, err := choose(rows, names, commit)
	if err != nil {
		return err
	}
	var due []row
	for _, one := range chosen {
		kept := one.Result != nil && one.Result.Inputs == one.Inputs && one.Result.Verdict != "Invalid"
		if force || names == shortName || !kept {
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
