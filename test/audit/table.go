package audit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Unseen has the rights that no logged request needs, each with the reason why it is granted.
var Unseen = map[Right]string{
	{"manager", "update",
		"storagebenchmarks.storagebench.dev/finalizers"}: "asked for by admission (OwnerReferencesPermissionEnforcement) of whoever makes an " +
		"object whose owner may not go before it",
	{"manager", "update", "benchmarkruns.storagebench.dev/finalizers"}: "the same",
	{"manager", "patch", "events.events.k8s.io"}:                       "an event that repeats is counted in its series, after some minutes",
	{"agent", "patch", "events.events.k8s.io"}:                         "the same",
	{"manager", "patch", "events"}:                                     "the same of the leader's, which changes only when managers do",
}

// streamed is the reason why a cache may list a kind that it watches.
const streamed = "a cache gets what is there by its watch, but from an API server that cannot stream (before Kubernetes 1.34, by " +
	"default) by a list"

// reason returns why a right is granted although no request needed it, or an empty string.
func reason(right Right, log Log) string {
	watch := right
	watch.Verb = "watch"
	if right.Verb == "list" && log.Used[watch] > 0 {
		return streamed
	}
	return Unseen[right]
}

// Row is one right of a role.
type Row struct {
	Right
	Role string
	// Requests that needed it.
	Requests int
	// Reason why it is granted, if no request needed it.
	Reason string
}

// Table returns a row for each right of the roles, which are given by name. The names of the agent's roles begin with storagebench-agent.
func Table(roles map[string][]rbacv1.PolicyRule, log Log) []Row {
	var rows []Row
	for role, rules := range roles {
		account := "manager"
		if strings.HasPrefix(role, "storagebench-agent") {
			account = "agent"
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					for _, verb := range rule.Verbs {
						name, subresource, _ := strings.Cut(name, "/")
						right := Right{Account: account, Verb: verb, Resource: resource(group, name, subresource)}
						rows = append(rows, Row{Right: right, Role: role, Requests: log.Used[right], Reason: reason(right, log)})
					}
				}
			}
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if by := compare(a.Right, b.Right); by != 0 {
			return by
		}
		return strings.Compare(a.Role, b.Role)
	})
	return rows
}

// Problems returns the rights that nothing needs, the requests that no role in the table allows, and the unnecessary reasons.
func Problems(rows []Row, log Log) (problems []string) {
	granted := map[Right]bool{}
	for _, row := range rows {
		granted[row.Right] = true
		if row.Requests == 0 && row.Reason == "" {
			problems = append(problems,
				fmt.Sprintf("%s is granted by %s, and no test needs it: remove it, or say in test/audit/table.go why it is there", row.Right, row.Role))
		}
	}
	for right := range log.Used {
		if !granted[right] {
			problems = append(problems, fmt.Sprintf("%s was allowed, but none of our roles grants it", right))
		}
	}
	for right := range Unseen {
		if !granted[right] {
			problems = append(problems, fmt.Sprintf("%s has a reason in test/audit/table.go, but no role grants it: remove it there", right))
		}
	}
	slices.Sort(problems)
	return problems
}

// Text formats the table for people.
func Text(rows []Row) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-8s %-17s %-52s %-30s %s\n", "account", "verb", "resource", "role", "requests seen, or why it is granted")
	for _, row := range rows {
		seen := fmt.Sprint(row.Requests)
		if row.Requests == 0 {
			seen = "0: " + row.Reason
		}
		fmt.Fprintf(&text, "%-8s %-17s %-52s %-30s %s\n", row.Account, row.Verb, row.Resource, row.Role, seen)
	}
	return text.String()
}
