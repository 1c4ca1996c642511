package operations

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ParameterAllowlist lists the module parameters and values that the admin allows operations to set. Without a grant, no parameter is
// allowed.
type ParameterAllowlist []ParameterGrant

// ParameterGrant allows values of one module parameter.
type ParameterGrant struct {
	Name string
	// Any allows every value. Otherwise these values are allowed.
	Any    bool
	Values []ParameterValues
}

// ParameterValues is one value or, if Value is empty, all whole numbers from Min to Max.
type ParameterValues struct {
	Value    string
	Min, Max uint64
}

var (
	parameterName  = regexp.MustCompile(`^(zfs|spa|metaslab|zil|zio|dmu|dbuf|vdev|zvol|l2arc|send|spl|zfetch)_[a-z0-9_]+$`)
	parameterValue = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/+-]*$`)
	// plainNumber excludes numbers that the kernel parses differently: it reads 010 as 8.
	plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

// ParseParameterGrant reads NAME=MIN..MAX, NAME=VALUE, NAME=*, or several ranges and values separated by '|'.
func ParseParameterGrant(text string) (ParameterGrant, error) {
	wrong := func(format string, values ...any) error {
		return fmt.Errorf("parameter grant %q: "+format, append([]any{text}, values...)...)
	}
	name, bounds, hasBounds := strings.Cut(text, "=")
	if !parameterName.MatchString(name) {
		return ParameterGrant{}, wrong("start with the name of an OpenZFS module parameter, such as zfs_txg_timeout")
	}
	if !hasBounds || bounds == "" {
		return ParameterGrant{}, wrong("say which values are allowed: %s=1..60, %s=5|30, or %s=* for every value", name, name, name)
	}
	grant := ParameterGrant{Name: name, Any: bounds == "*"}
	if grant.Any {
		return grant, nil
	}
	for item := range strings.SplitSeq(bounds, "|") {
		values, problem := parseParameterValues(item)
		if problem != "" {
			return ParameterGrant{}, wrong("%s", problem)
		}
		grant.Values = append(grant.Values, values)
	}
	return grant, nil
}

func parseParameterValues(item string) (values ParameterValues, problem string) {
	from, to, isRange := strings.Cut(item, "..")
	switch {
	case !isRange && !parameterValue.MatchString(item):
		return values, fmt.Sprintf("%q is not a value: write MIN..MAX, or plain values with '|' between them; '*' stands alone", item)
	case !isRange:
		return ParameterValues{Value: item}, ""
	case !plainNumber.MatchString(from) || !plainNumber.MatchString(to):
		return values, fmt.Sprintf("%q is not a range: write two whole numbers in plain digits, such as 1..60", item)
	}
	var errMin, errMax error
	values.Min, errMin = strconv.ParseUint(from, 10, 64)
	values.Max, errMax = strconv.ParseUint(to, 10, 64)
	switch {
	case errMin != nil || errMax != nil:
		return values, fmt.Sprintf("%q exceeds 64 bits: use smaller numbers", item)
	case values.Min > values.Max:
		return values, fmt.Sprintf("%q is empty: make MIN at most MAX", item)
	}
	return values, ""
}

func (v ParameterValues) allows(value string) bool {
	if v.Value != "" {
		return value == v.Value
	}
	number, err := strconv.ParseUint(value, 10, 64)
	return err == nil && plainNumber.MatchString(value) && v.Min <= number && number <= v.Max
}

func (v ParameterValues) String() string {
	if v.Value != "" {
		return v.Value
	}
	return fmt.Sprintf("%d..%d", v.Min, v.Max)
}

// Bounds returns the allowed values in the admin's notation.
func (g ParameterGrant) Bounds() string {
	if g.Any {
		return "*"
	}
	var words []string
	for _, values := range g.Values {
		words = append(words, values.String())
	}
	return strings.Join(words, "|")
}

// String returns the grant in the format that ParseParameterGrant reads.
func (g ParameterGrant) String() string { return g.Name + "=" + g.Bounds() }

// Refusal returns why a module parameter may not have a value, or "" if it may.
func (p ParameterAllowlist) Refusal(node, name, value string) string {
	var bounds []string
	for _, grant := range p {
		if grant.Name != name {
			continue
		}
		if grant.Any || slices.ContainsFunc(grant.Values, func(values ParameterValues) bool { return values.allows(value) }) {
			return ""
		}
		bounds = append(bounds, grant.Bounds())
	}
	if len(bounds) == 0 {
		return fmt.Sprintf("the agent on node %s may not set %s: ask the cluster's admin for a grant, such as --allow-parameter=%s=%s "+
			"(agent.allowParameters)", node, name, name, value)
	}
	return fmt.Sprintf("the agent on node %s may set %s only to %s, in plain digits, not to %s: choose such a value, or ask the cluster's "+
		"admin for another grant (agent.allowParameters)",
		node, name, strings.Join(bounds, "|"), value)
}
