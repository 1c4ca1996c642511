// Package audit compares the rights of the manager and the agents in a cluster with the requests that they make, according to the audit
// logs of the test API servers.
package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Right is one verb on one kind of object, for one account.
type Right struct {
	// Account is manager or agent.
	Account string
	// Resource is followed by its subresource and its group, for example jobs.batch or pods/log.
	Verb, Resource string
}

// String returns the right in words.
func (r Right) String() string { return r.Account + " " + r.Verb + " " + r.Resource }

// Log has the requests that the API server received.
type Log struct {
	// Used counts the requests that were allowed.
	Used map[Right]int
	// Forbidden has the rights that no role granted, each with the URI of a request that needed it.
	Forbidden map[Right]string
}

// Missing returns an error that lists the missing rights, or nil.
func (l Log) Missing() error {
	var missing []error
	for _, right := range slices.SortedFunc(maps.Keys(l.Forbidden), compare) {
		missing = append(missing, fmt.Errorf("the right to this is missing: %s (%s)", right, l.Forbidden[right]))
	}
	return errors.Join(missing...)
}

func compare(a, b Right) int {
	return strings.Compare(a.Account+" "+a.Resource+" "+a.Verb, b.Account+" "+b.Resource+" "+b.Verb)
}

// event has the fields of an audit log line that matter here.
type event struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// accounts maps the ends of user names to accounts.
var accounts = map[string]string{":storagebench-manager": "manager", ":storagebench-agent": "agent"}

// Read reads audit logs.
func Read(paths ...string) (Log, error) {
	log := Log{Used: map[Right]int{}, Forbidden: map[Right]string{}}
	for _, path := range paths {
		if err := log.read(path); err != nil {
			return log, err
		}
	}
	return log, nil
}

func (l Log) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one event
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		right, of := one.right()
		switch {
		case !of:
		case one.Annotations["authorization.k8s.io/decision"] == "allow":
			l.Used[right]++
		default:
			l.Forbidden[right] = one.RequestURI
		}
	}
	return lines.Err()
}

// right returns the right that a request needed. Requests that every account may make, for example discovery, need none of our rights.
func (e event) right() (Right, bool) {
	if e.ObjectRef == nil {
		return Right{}, false
	}
	for suffix, account := range accounts {
		if strings.HasSuffix(e.User.Username, suffix) {
			return Right{Account: account, Verb: e.Verb, Resource: resource(e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)},
				true
		}
	}
	return Right{}, false
}

func resource(group, name, subresource string) string {
	if group != "" {
		name += "." + group
	}
	if subresource != "" {
		name += "/" + subresource
	}
	return name
}
