// Package flagenv lets environment variables set the flags of a program. The variables of a container are merged by name, so a
// kustomization or a chart can change one setting without knowing the others or their order.
package flagenv

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
)

// Prefix begins the name of each variable. No variable that Kubernetes sets for a Service begins with it, unless the Service is called flag
// or flag-...
const Prefix = "FLAG_"

// Variable returns the name of the variable that sets a flag.
func Variable(flagName string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// Apply sets flags from the environment, in the form of os.Environ. Flags on the command line take precedence, and empty variables are
// ignored. The variable of a repeatable flag has one value per line. A variable that has the prefix but matches no flag is an error.
func Apply(flags *flag.FlagSet, environment []string, repeatable ...string) error {
	given, known := map[string]bool{}, map[string]string{}
	flags.Visit(func(one *flag.Flag) { given[one.Name] = true })
	flags.VisitAll(func(one *flag.Flag) { known[Variable(one.Name)] = one.Name })
	var problems []error
	for _, entry := range environment {
		variable, text, _ := strings.Cut(entry, "=")
		name := known[variable]
		switch {
		case !strings.HasPrefix(variable, Prefix) || given[name] || strings.TrimSpace(text) == "":
			continue
		case name == "":
			problems = append(problems, fmt.Errorf("the environment variable %s sets no flag: there is no --%s", variable,
				strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, Prefix), "_", "-"))))
			continue
		}
		values := []string{text}
		if slices.Contains(repeatable, name) {
			values = Values(text)
		}
		for _, value := range values {
			if err := flags.Set(name, value); err != nil {
				problems = append(problems, fmt.Errorf("the environment variable %s: invalid value %q: %w", variable, value, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Values splits the variable of a repeatable flag into its values, one per line.
func Values(text string) (values []string) {
	for line := range strings.Lines(text) {
		if value := strings.TrimSpace(line); value != "" {
			values = append(values, value)
		}
	}
	return values
}
