// Package cli is the command line tool: kubectl storagebench, or kubectl-storagebench by itself.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/storagebench/storagebench/internal/spelling"
)

// App is the tool with all its outside dependencies, which tests replace.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// Terminal returns the size of Out, and whether it is a terminal. Nil means that it is none.
	Terminal func() (columns, rows int, is bool)
	// Colour enables colours on a terminal.
	Colour bool
	// Now is the clock.
	Now func() time.Time
	// Version of the release. Empty means the version of the build.
	Version string
	// Connect connects to the cluster. Nil does it as kubectl does.
	Connect func(Connection) (*Cluster, error)
	// Local holds what run --local needs.
	Local Local
}

// Main runs the tool and returns its exit code.
func (a *App) Main(ctx context.Context, arguments []string) int {
	printed := &output{to: a.Out}
	checking := *a
	checking.Out = printed
	root := checking.Command()
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	code, text := exitCode(err)
	if problem := printed.problem(); problem != nil && !text {
		// A program that reads the output must not take a part of it for the whole. Verdicts other than Passed already stop it.
		code, text, err = cmp.Or(code, ExitError), true, fmt.Errorf("the output is incomplete: %w", problem)
	}
	if text {
		_, _ = fmt.Fprintln(a.Err, "Error:", cleanLines(err.Error()))
	}
	return code
}

// Command returns the tree of commands with their flags.
func (a *App) Command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-storagebench",
		Short: "Run storage benchmarks in Kubernetes, or on this machine",
		Long: `Run storage benchmarks in Kubernetes, or on this machine, and judge them. A benchmark is a StorageBenchmark in a file.

` + exitHelp + `

Commands without a verdict give 1 to 4 other meanings; see their --help.`,
		SilenceErrors: true, SilenceUsage: true,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl storagebench"},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return exitf(ExitUsage, "%w: see '%s --help'", err, command.CommandPath())
	})
	for _, one := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run and follow:", []*cobra.Command{a.runCommand(), a.listCommand(), a.showCommand(), a.watchCommand(), a.logsCommand(),
			a.suspendCommand(), a.resumeCommand(), a.rerunCommand(), a.gateCommand(), a.qualifyCommand(), a.sweepCommand()}},
		{"Results:", []*cobra.Command{a.reportCommand(), a.compareCommand(), a.historyCommand(), a.baselineCommand(), a.calibrationCommand()}},
		{"Manifests:", []*cobra.Command{a.samplesCommand(), a.planCommand(), a.validateCommand()}},
		{"Other:", []*cobra.Command{a.doctorCommand(), a.collectCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: one.title, Title: one.title})
		for _, command := range one.commands {
			command.GroupID = one.title
		}
		root.AddCommand(one.commands...)
	}
	root.SetHelpCommandGroupID("Other:")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, command := range root.Commands() { // those of cobra accept every argument
		switch command.Name() {
		case "completion":
			asGroup(command)
		case "help":
			command.Args = knownTopic
		}
	}
	return asGroup(root)
}

// asGroup completes a command that only has subcommands: it prints its help, and refuses other names.
func asGroup(parent *cobra.Command) *cobra.Command {
	parent.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) > 0 {
			return unknownCommand(parent, arguments[0])
		}
		return nil
	}
	parent.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	return parent
}

// knownTopic refuses help about a command that does not exist.
func knownTopic(help *cobra.Command, topic []string) error {
	found, rest, err := help.Root().Find(topic)
	if err == nil && len(rest) > 0 && found.HasSubCommands() {
		return unknownCommand(found, rest[0])
	}
	return nil
}

func unknownCommand(parent *cobra.Command, given string) error {
	where := ""
	if parent.HasParent() {
		where = " for " + parent.Name()
	}
	var names []string
	for _, command := range parent.Commands() {
		names = append(append(names, command.Name()), command.Aliases...)
	}
	if meant := spelling.Slip(given, names); meant != "" {
		return exitf(ExitUsage, "unknown command %q%s: did you mean %s?", given, where, meant)
	}
	return exitf(ExitUsage, "unknown command %q%s: use %s", given, where, namesOf(parent))
}

// namesOf lists the subcommands of a command, with their other names.
func namesOf(parent *cobra.Command) string {
	var names []string
	for _, command := range parent.Commands() {
		if command.IsAvailableCommand() {
			name := command.Name()
			if len(command.Aliases) > 0 {
				name += " (also: " + strings.Join(command.Aliases, ", ") + ")"
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// onTerminal reports whether the output is a terminal.
func (a *App) onTerminal() bool {
	if a.Terminal == nil {
		return false
	}
	_, _, is := a.Terminal()
	return is
}

// say prints one line.
func (a *App) say(format string, arguments ...any) {
	_, _ = fmt.Fprintln(a.Out, cleanLines(fmt.Sprintf(format, arguments...)))
}

// untilInterrupted returns a context that ends on Ctrl-C or SIGTERM.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

func atLeastOne(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return exitf(ExitUsage, "%s", usage)
		}
		return nil
	}
}

// noArgument refuses arguments, and says what to do instead: the %s in instead stands for the argument.
func noArgument(instead string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) > 0 {
			return exitf(ExitUsage, "%s takes no argument: "+instead, command.Name(), arguments[0])
		}
		return nil
	}
}

func exactlyOne(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return exitf(ExitUsage, "%s", usage)
		}
		return nil
	}
}

// clean makes text one line that is safe for a terminal: text from pods and manifests may contain escape sequences.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// cleanLines is clean for multi-line text.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
