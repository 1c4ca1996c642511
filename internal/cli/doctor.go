package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
)

// health is the result of a check of the cluster.
type health string

const (
	healthy health = "ok"
	// sick: benchmarks, or those with zfs targets, do not work until the remedy is applied.
	sick health = "problem"
	// unsure: benchmarks may not work, or not as well as they could.
	unsure health = "warning"
	// unseen: it could not be checked, for example because the user lacks the rights or because there is nothing to look at yet.
	unseen health = "not seen"
)

// finding is one sentence of a check, with its remedy. Its fields are also the output for programs.
type finding struct {
	Check  string `json:"check"`
	Health health `json:"state"`
	Says   string `json:"message"`
	Remedy string `json:"remedy,omitempty"`
}

// patient is the cluster that is examined.
type patient struct {
	app     *App
	cluster *Cluster
	// served is the error of the API if rights or CRDs are missing, otherwise nil. After any other error, nothing is examined.
	served error
	// agents are the DaemonSets of the agent, read once.
	agents func() ([]appsv1.DaemonSet, error)
}

// newPatient begins the examination of a cluster.
func newPatient(ctx context.Context, app *App, cluster *Cluster, served error) *patient {
	return &patient{app, cluster, served, sync.OnceValues(func() ([]appsv1.DaemonSet, error) {
		var sets appsv1.DaemonSetList
		err := cluster.Client.List(ctx, &sets, component(partAgent))
		return slices.DeleteFunc(sets.Items, func(one appsv1.DaemonSet) bool {
			return one.Spec.Template.Spec.ServiceAccountName != accountOf(partAgent)
		}), err
	})}
}

// checks are made and printed in this order.
var checks = []struct {
	about string
	look  func(context.Context, *patient) []finding
}{
	{"api", examineAPI}, {"namespace", examineNamespace}, {"rights", examineRights}, {"crds", examineCRDs}, {"manager", examineManager},
	{"progress", examineProgress}, {"storage", examineClasses}, {"agents", examineAgents}, {"disks", examineGrants},
	{"openzfs", examineZFS}, {"driver", examineDriver}, {"clock", examineClock},
}

func (a *App) doctorCommand() *cobra.Command {
	var connection Connection
	var format string
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Examine whether the cluster is fit for benchmarks, and say how to fix what is not",
		Long: `Examine whether the cluster and the namespace are fit for benchmarks: the API and its version, your rights, the manager, classes,
agents, granted disks, OpenZFS, the driver, the clock. Nothing is changed. Checks for which you lack permission are listed as 'not seen'.
A cluster admin sees all checks.

` + exitCodes(map[int]string{ExitPassed: "there is no problem", ExitFailed: "there is a problem", ExitUnavailable: unavailable}),
		Example: `  kubectl storagebench doctor -n team-a
  kubectl storagebench doctor -o json | jq '.[] | select(.state == "problem")'`,
		Args: noArgument("remove %s"),
		RunE: func(command *cobra.Command, _ []string) error { return a.doctor(command.Context(), connection, format) },
	}
	connection.addFlags(command.Flags())
	a.addFormat(command, &format, structured)
	return command
}

func (a *App) doctor(ctx context.Context, connection Connection, format string) error {
	cluster, err := a.connect(connection)
	if err != nil {
		return err
	}
	found, err := a.examine(ctx, cluster)
	if err != nil {
		return err
	}
	if format == formatText {
		a.sayFindings(cluster.Namespace, found)
	} else if err := a.printDocument(found, format); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(one finding) bool { return one.Health == sick }) {
		return silent(ExitFailed)
	}
	return nil
}

// examine makes all checks. It returns an error if the cluster cannot be queried at all.
func (a *App) examine(ctx context.Context, cluster *Cluster) (found []finding, err error) {
	var probe v1alpha1.StorageBenchmarkList
	served := cluster.Client.List(ctx, &probe, inNamespace(cluster, 1)...)
	if served != nil && !apierrors.IsForbidden(served) && !isNotServed(served) {
		return nil, explain("examine the cluster", served)
	}
	examined := newPatient(ctx, a, cluster, served)
	for _, check := range checks {
		for _, one := range check.look(ctx, examined) {
			one.Check = check.about
			found = append(found, one)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return found, nil
}

func (a *App) sayFindings(namespace string, found []finding) {
	a.say("Namespace %s\n", namespace)
	counts := map[health]int{}
	for _, one := range found {
		counts[one.Health]++
		a.say("%s  %-9s %s", a.healthWord(one.Health), one.Check, clean(one.Says))
		if one.Remedy != "" {
			a.say("%21s-> %s", "", clean(one.Remedy))
		}
	}
	a.say("\n%s, %s, %d not seen", spelling.Count(counts[sick], "problem"), spelling.Count(counts[unsure], "warning"), counts[unseen])
}

// healthWord returns a word with its colour, padded to the same width as all others.
func (a *App) healthWord(of health) string {
	moods := map[health]mood{healthy: good, sick: bad, unsure: doubtful}
	return tint(fmt.Sprintf("%-8s", of), moods[of], a.Colour && a.onTerminal())
}

func fine(format string, arguments ...any) finding {
	return finding{Health: healthy, Says: fmt.Sprintf(format, arguments...)}
}

func problemFound(remedy, format string, arguments ...any) finding {
	return finding{Health: sick, Says: fmt.Sprintf(format, arguments...), Remedy: remedy}
}

func warningFound(remedy, format string, arguments ...any) finding {
	return finding{Health: unsure, Says: fmt.Sprintf(format, arguments...), Remedy: remedy}
}

// notSeen returns the finding that something could not be read, and why.
func notSeen(what string, err error) finding {
	if apierrors.IsForbidden(err) {
		return finding{Health: unseen, Says: what + ": you may not read them; a cluster admin can"}
	}
	if isNotServed(err) {
		return finding{Health: unseen, Says: what + ": the cluster does not have this kind"}
	}
	return finding{Health: unseen, Says: fmt.Sprintf("%s: %v", what, strings.TrimSpace(err.Error()))}
}
