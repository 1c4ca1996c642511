package documents

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/config/crd"
	"github.com/storagebench/storagebench/internal/cli"
)

// others are programs of other projects that pages use. Their arguments are not checked, except files of this repository.
var others = strings.Fields("apt-get base64 cd cp ctr curl docker echo exec exit export git go gunzip jq kind ls lsblk mkdir sha256sum")

// vetter checks commands without executing them.
type vetter struct {
	t *testing.T
	// targets and variables are those of make and of the scripts.
	targets, variables map[string]bool
	// resources are the names that kubectl accepts for the kinds of objects on the pages.
	resources map[string]bool
	// crds are the names of all CRDs.
	crds []string
	// tops are the files and folders in the root of the repository.
	tops map[string]bool
	// programs caches the paths of kubectl and helm; helped caches the errors that they report for a command.
	programs, helped map[string]string
}

var (
	target   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	variable = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	assigned = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)=`)
)

func newVetter(t *testing.T) *vetter {
	v := &vetter{t: t, targets: map[string]bool{}, variables: map[string]bool{}, resources: map[string]bool{}, tops: map[string]bool{},
		programs: map[string]string{}, helped: map[string]string{}}
	for _, match := range target.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		v.targets[match[1]] = true
	}
	for _, name := range []string{"Makefile", "hack", "images", "test"} {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() && (filepath.Ext(path) == "" || filepath.Ext(path) == ".go") {
				for _, found := range variable.FindAllString(read(t, path), -1) {
					v.variables[found] = true
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields("cm configmap configmaps clusterrolebinding crd deployment job namespace node nodes token") {
		v.resources[name] = true // of Kubernetes
	}
	for _, one := range crds(t) {
		v.crds = append(v.crds, one.Name)
		for _, name := range append(one.Spec.Names.ShortNames, one.Spec.Names.Plural, one.Spec.Names.Singular, one.Name) {
			v.resources[name] = true
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		v.tops[entry.Name()] = entry.Name() != "bin" && entry.Name() != "dist" // these hold build output
	}
	return v
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func crds(t *testing.T) (all []apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	manifests, err := crd.All()
	if err != nil || len(manifests) < 3 {
		t.Fatal(len(manifests), err)
	}
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		var one apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(manifests[name], &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// problems returns what is wrong with a text for the shell.
func (v *vetter) problems(text string) (all []string) {
	check := exec.CommandContext(v.t.Context(), "bash", "-n")
	check.Stdin = strings.NewReader(text)
	if output, err := check.CombinedOutput(); err != nil {
		all = append(all, string(output))
	}
	for _, words := range simpleCommands(text) {
		for len(words) > 0 && assigned.MatchString(words[0]) {
			all = append(all, v.assignment(words[0])...)
			words = words[1:]
		}
		if len(words) == 1 && strings.Contains(words[0], "=") {
			continue // a variable of the reader
		}
		all = append(all, v.files(words)...)
		if len(words) > 0 {
			all = append(all, v.command(words[0], words[1:])...)
		}
	}
	return all
}

func (v *vetter) assignment(word word) []string {
	if name := assigned.FindStringSubmatch(word)[1]; !v.variables[name] {
		return []string{"neither make nor a script knows the variable " + name}
	}
	return nil
}

// files checks that each file of the repository that a command names exists.
func (v *vetter) files(words []word) (all []string) {
	for _, word := range words {
		path := word[strings.LastIndexByte(word, '=')+1:]
		top, below, _ := strings.Cut(strings.TrimPrefix(path, "./"), "/")
		if !v.tops[top] || below == "" {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(found) == 0 {
			all = append(all, "there is no file "+path)
		}
	}
	return all
}

// command vets a simple command. A program that is not known here is a problem too: it may be a mistake.
func (v *vetter) command(program string, arguments []word) []string {
	switch {
	case program == "kubectl-storagebench":
		return plugin(arguments)
	case program == "kubectl" && len(arguments) > 0 && arguments[0] == "storagebench":
		return plugin(arguments[1:])
	case program == "kubectl":
		return append(v.flags(program, arguments), v.kinds(arguments)...)
	case program == "helm":
		return v.flags(program, arguments)
	case program == "make":
		return v.make(arguments)
	case strings.HasPrefix(program, "hack/"), program == "dist/bin/lab", slices.Contains(others, program):
		return nil
	}
	return []string{fmt.Sprintf("the program %s is not known to test/documents", program)}
}

// plugin checks that kubectl storagebench has the command and its flags, and accepts this number of arguments.
func plugin(arguments []word) []string {
	if len(arguments) > 0 && arguments[0] == "__complete" {
		return nil // of cobra, for completion
	}
	command, rest, err := commandOf(arguments)
	if err == nil {
		err = command.ParseFlags(rest)
	}
	if err == nil {
		err = command.ValidateArgs(command.Flags().Args())
	}
	if err != nil {
		return []string{fmt.Sprintf("kubectl storagebench %s: %v", strings.Join(arguments, " "), err)}
	}
	return nil
}

// commandOf returns the command of the plugin that arguments begin with, and the arguments after its name.
func commandOf(arguments []word) (command *cobra.Command, rest []word, err error) {
	tree := (&cli.App{}).Command()
	tree.InitDefaultCompletionCmd(arguments...)
	command, rest, err = tree.Find(arguments)
	if err == nil && command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		err = fmt.Errorf("%s has no command %s", command.CommandPath(), rest[0])
	}
	command.InitDefaultHelpFlag()
	return command, rest, err
}

// mentioned vets a command within a sentence, which may be incomplete.
func (v *vetter) mentioned(text string) (all []string) {
	for _, words := range simpleCommands(text) {
		arguments, ours := words[1:], words[0] == "kubectl-storagebench"
		if words[0] == "kubectl" && len(words) > 1 && words[1] == "storagebench" {
			arguments, ours = words[2:], true
		}
		if !ours {
			all = append(all, append(v.files(words), v.command(words[0], words[1:])...)...)
			continue
		}
		command, rest, err := commandOf(arguments)
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		for _, word := range rest {
			name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if strings.HasPrefix(word, "--") && command.Flags().Lookup(name) == nil && command.InheritedFlags().Lookup(name) == nil {
				all = append(all, "there is no flag --"+name)
			}
		}
	}
	return all
}

func (v *vetter) make(arguments []word) (all []string) {
	for _, argument := range arguments {
		names := func(target string) bool { is, _ := filepath.Match(argument, target); return is }
		switch {
		case strings.HasPrefix(argument, "-"):
		case assigned.MatchString(argument):
			all = append(all, v.assignment(argument)...)
		case !slices.ContainsFunc(slices.Collect(maps.Keys(v.targets)), names):
			all = append(all, "the Makefile has no target "+argument)
		}
	}
	return all
}

// flags checks the command and its flags in a program that parses them all before it prints its help.
func (v *vetter) flags(program string, arguments []word) []string {
	asked := program + " " + strings.Join(arguments, " ")
	if slices.Contains(arguments, "--") {
		return []string{asked + ": what comes after -- is not known to test/documents"}
	}
	refused, known := v.helped[asked]
	if !known {
		help := exec.CommandContext(v.t.Context(), v.program(program), append(slices.Clone(arguments), "--help")...)
		help.Env = append(os.Environ(), "KUBECONFIG="+os.DevNull)
		if output, err := help.CombinedOutput(); err != nil {
			refused = fmt.Sprintf("%s: %v: %s", asked, err, output)
		}
		v.helped[asked] = refused
	}
	if refused == "" {
		return nil
	}
	return []string{refused}
}

// program returns the path of a program: the installed one, or the pinned one.
func (v *vetter) program(name string) string {
	if v.programs[name] == "" {
		path, err := exec.LookPath(name)
		if err != nil {
			output, failed := exec.CommandContext(v.t.Context(), filepath.Join(root, "hack/tool"), name).Output()
			path, err = strings.TrimSpace(string(output)), failed
		}
		if err != nil {
			v.t.Fatalf("hack/tool %s: %v", name, err)
		}
		v.programs[name] = path
	}
	return v.programs[name]
}

// kinds checks that the kinds of objects in a command of kubectl exist.
func (v *vetter) kinds(arguments []word) (all []string) {
	var names []word
	for i := 0; i < len(arguments); i++ {
		switch argument := arguments[i]; {
		case slices.Contains([]word{"-n", "-o", "-l", "-L", "-p", "-f", "-k", "--namespace"}, argument):
			i++ // its value
		case !strings.HasPrefix(argument, "-"):
			names = append(names, argument)
		}
	}
	if len(names) < 2 || !slices.Contains([]word{"get", "describe", "delete", "wait", "patch", "annotate", "label"}, names[0]) {
		return nil
	}
	for kind := range strings.SplitSeq(names[1], ",") {
		if kind, _, _ = strings.Cut(kind, "/"); !v.resources[kind] {
			all = append(all, "kubectl "+names[0]+": there is no kind "+kind)
		}
	}
	if names[0] == "delete" && names[1] == "crd" {
		if !slices.Equal(slices.Sorted(slices.Values(names[2:])), v.crds) {
			all = append(all, "the CRDs are "+strings.Join(v.crds, " "))
		}
	}
	return all
}
