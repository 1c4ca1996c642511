package delivery

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/internal/cli"
)

// The roles that make up the role edit. In a cluster, a controller adds the rules of storagebench to edit and view.
var editRoles = []string{"system:aggregate-to-edit", "system:aggregate-to-view", "storagebench-editor"}

// person returns the plugin as a user of the team's namespace runs it, who has only these roles.
func person(t *testing.T, name string, roles ...string) func(arguments ...string) (code int, out, problems string) {
	t.Helper()
	for _, role := range roles {
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + strings.ReplaceAll(role, ":", "-"), Namespace: team},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}}
		create(t, binding)
		t.Cleanup(func() { _ = admin.Delete(context.WithoutCancel(t.Context()), binding) })
	}
	acting := rest.CopyConfig(config)
	acting.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	return func(arguments ...string) (int, string, string) {
		var out, problems bytes.Buffer
		app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &problems, Now: time.Now, Version: builtVersion,
			Connect: func(connection cli.Connection) (*cli.Cluster, error) {
				return cli.ConnectTo(acting, team, connection.Warnings)
			}}
		return app.Main(t.Context(), arguments), out.String(), problems.String()
	}
}

// usePlugin checks that all commands work with the role edit in a namespace, and that those that only read work with the role view.
func usePlugin(t *testing.T, log fmt.Stringer) {
	t.Helper()
	edith, victor := person(t, "edith", editRoles...), person(t, "victor", "system:aggregate-to-view", "storagebench-viewer")
	folder := t.TempDir()
	manifest := filepath.Join(folder, "first.yaml")
	if err := os.WriteFile(manifest, []byte(firstBenchmark), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, log, "the roles have arrived", func(context.Context) bool {
		one, _, _ := edith("list")
		other, _, _ := victor("list")
		return one == cli.ExitPassed && other == cli.ExitPassed
	})
	for _, step := range []struct {
		arguments string
		code      int
	}{
		{"run " + manifest + " --wait --timeout 2m", cli.ExitPassed},
		{"doctor", cli.ExitPassed},
		{"logs first", cli.ExitNotFound}, // its pods are gone, and it says so
		{"suspend first", cli.ExitPassed}, {"resume first", cli.ExitPassed},
		{"rerun first --wait --timeout 2m", cli.ExitPassed},
		{"watch first --timeout 2m", cli.ExitPassed},
	} {
		if code, out, problems := edith(strings.Fields(step.arguments)...); code != step.code {
			t.Fatalf("with the role edit, %s: exit code %d, want %d\n%s%s\nthe manager's log:\n%s", step.arguments, code, step.code, out, problems, log)
		}
	}
	for name, one := range map[string]func(...string) (int, string, string){"edit": edith, "view": victor} {
		for _, arguments := range []string{"list -o wide", "show first", "report first", "report first --output-dir " + filepath.Join(folder, name),
			"history first", "compare first first", "baseline accept first",
			"collect -o " + filepath.Join(folder, name+".tar.gz"), "__complete show f"} {
			if code, out, problems := one(strings.Fields(arguments)...); code != cli.ExitPassed {
				t.Errorf("with the role %s, %s: exit code %d\n%s%s", name, arguments, code, out, problems)
			}
		}
	}
	for _, arguments := range []string{"run " + manifest, "rerun first"} {
		if code, _, problems := victor(strings.Fields(arguments)...); code != cli.ExitUnavailable {
			t.Errorf("with the role view, %s: exit code %d: %s", arguments, code, problems)
		}
	}
	benchmark := teamBenchmark(t)
	if err := admin.Delete(t.Context(), benchmark); err != nil {
		t.Fatal(err)
	}
	until(t, log, "the benchmark is gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(benchmark), benchmark))
	})
}
