package results

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// ignoredKeys are the keys of the environment that differ each time or follow from others: names that the kernel and the cluster assign,
// seeds, and outcomes. Every other key counts, including those that a later release adds. A test compares them with
// docs/tasks/baselines.md.
var ignoredKeys = []string{
	"beside.outcome", "device.*.name", "device.*.path", "device.*.serial", "mount.root", "mount.source", "operation.pool",
	"postgres.rampUpSeed", "postgres.seed", "steadyState", "zfs.dataset", "zfs.pool",
}

// KeyWorkloadVersion is the key of the environment with the workloads and their versions.
const KeyWorkloadVersion = "workload.version"

// MainKeys are the keys of the environment that readers look for first. They are omitted last.
var MainKeys = []string{"kernel", "os", "zfs.version", "fio", "postgres.version", "cpu.model", "cpu.count", "memory.bytes", "machine",
	"virtualization", "mount.type", "mount.options"}

// aboutKeys are the keys of numbers that are never exactly the same: the kernel reserves some memory before it counts the rest, and derives
// values from that.
var aboutKeys = []string{"memory.bytes", "zfs.parameter.zfs_dirty_data_max"}

// alikePercent is the percentage by which values of aboutKeys may differ.
const alikePercent = 1

// essences reduce a value to its relevant parts, by key.
var essences = []struct {
	key     string
	essence func(string) string
}{
	{"cgroup.cpus", countCPUs},
	{"cpu.allowed", countCPUs},
	{"cgroup.ioLimits", withoutDeviceNumbers},
	{"mount.options", withoutAddresses},
	{"warning.*", func(string) string { return "given" }},
}

// Difference is a changed part of the environment.
type Difference struct {
	// Key in the environment.
	Key string
	// Baseline and Current are the values then and now. Empty if unknown.
	Baseline []string
	Current  []string
}

// maxShownBytes limits a value in a message, and maxShownValues their number: tenants can bring any number of values into their results.
const maxShownBytes, maxShownValues = 120, 8

// String describes the difference, such as "kernel: baseline 6.12.1, now 6.12.4".
func (d Difference) String() string {
	switch {
	case len(d.Baseline) == 0:
		return fmt.Sprintf("%s: not in the baseline, now %s", d.Key, inWords(d.Current))
	case len(d.Current) == 0:
		return fmt.Sprintf("%s: baseline %s, now unknown", d.Key, inWords(d.Baseline))
	}
	return fmt.Sprintf("%s: baseline %s, now %s", d.Key, inWords(d.Baseline), inWords(d.Current))
}

// Differences returns the parts of the environment that prevent a comparison, sorted by key: other hardware or versions. A part that only
// one side has counts as different. allow lists keys that may differ: complete ones, prefixes followed by "." or "*", and "*" inside for
// any text.
func Differences(baseline, current map[string][]string, allow []string) []Difference {
	var found []Difference
	keys := slices.Concat(sortedKeys(baseline), sortedKeys(current))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if ignoredKey(key) || DifferenceAllowed(key, allow) || sameValues(key, baseline[key], current[key]) {
			continue
		}
		found = append(found, Difference{Key: key, Baseline: baseline[key], Current: current[key]})
	}
	return found
}

// DifferenceAllowed reports whether one of the entries of allow matches the key.
func DifferenceAllowed(key string, allow []string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		if strings.HasSuffix(pattern, ".") {
			pattern += "*"
		}
		return matches(pattern, key)
	})
}

// DifferencesInWords describes at most this number of differences, and says how many more there are.
func DifferencesInWords(differences []Difference, most int) string {
	var words []string
	for i, difference := range differences {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(differences)-most))
			break
		}
		words = append(words, difference.String())
	}
	return strings.Join(words, "; ")
}

func ignoredKey(key string) bool {
	return slices.ContainsFunc(ignoredKeys, func(pattern string) bool { return isKey(pattern, key) })
}

// isKey reports whether a pattern matches a key, also after the name of one of several workloads or volumes, as in log.zfs.pool.
func isKey(pattern, key string) bool {
	_, unnamed, named := strings.Cut(key, ".")
	return matches(pattern, key) || named && matches(pattern, unnamed)
}

// matches compares with a pattern in which "*" stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, found := strings.CutPrefix(text, parts[0])
	if !found || len(parts) == 1 {
		return found && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		if _, rest, found = strings.Cut(rest, part); !found {
			return false
		}
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// sameValues compares the relevant parts of the values of a key, in any order.
func sameValues(key string, baseline, current []string) bool {
	if len(baseline) == 0 || len(current) == 0 {
		return len(baseline) == len(current)
	}
	if slices.Equal(distinct(key, baseline), distinct(key, current)) {
		return true
	}
	return slices.Contains(aboutKeys, key) && aboutEqual(slices.Concat(baseline, current))
}

// distinct returns the different relevant parts of the values of a key, sorted.
func distinct(key string, values []string) []string {
	found := slices.Clone(values)
	for _, of := range essences {
		if isKey(of.key, key) {
			for i, value := range values {
				found[i] = of.essence(value)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > 1 && slices.Contains(aboutKeys, key) && aboutEqual(found) {
		found = found[:1]
	}
	return found
}

// aboutEqual reports whether all values are whole numbers and close together.
func aboutEqual(values []string) bool {
	var numbers []int64
	for _, value := range values {
		number, err := strconv.ParseInt(value, 10, 64)
		if err != nil || number < 0 {
			return false
		}
		numbers = append(numbers, number)
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	return high-low <= high/100*alikePercent
}

// countCPUs converts "0-3,8" to "5 CPUs": which ones are available differs between pods.
func countCPUs(list string) string {
	count := int64(0)
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, fromErr := strconv.ParseInt(first, 10, 32)
		to, toErr := strconv.ParseInt(last, 10, 32)
		if fromErr != nil || toErr != nil || to < from {
			return list
		}
		count += to - from + 1
	}
	return fmt.Sprintf("%d CPUs", count)
}

// deviceNumber matches the major:minor number of the device of a limit.
var deviceNumber = regexp.MustCompile(`(^| )\d+:\d+ `)

func withoutDeviceNumbers(limits string) string { return deviceNumber.ReplaceAllString(limits, "$1") }

// changingOptions are the mount options that say where something is, or under which label.
var changingOptions = []string{
	"addr", "clientaddr", "context", "defcontext", "fscontext", "fsid", "mountaddr", "mountport", "name", "port", "rootcontext", "secret",
}

func withoutAddresses(options string) string {
	kept := slices.DeleteFunc(strings.Split(options, ","), func(option string) bool {
		name, _, assigns := strings.Cut(option, "=")
		// The label of a pod, context="...:c1,c2", contains a comma, so it was split as well.
		return assigns && slices.Contains(changingOptions, name) || mcsCategory.MatchString(option)
	})
	return strings.Join(kept, ",")
}

// mcsCategory matches the second half of a label's pair of categories.
var mcsCategory = regexp.MustCompile(`^c\d+"?$`)

// inWords lists the first values, each shortened, as in "a", or "a and b".
func inWords(values []string) string {
	shown := make([]string, 0, maxShownValues+1)
	for _, value := range values[:min(len(values), maxShownValues)] {
		shown = append(shown, spelling.Shorten(value, maxShownBytes))
	}
	if more := len(values) - maxShownValues; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	if len(shown) > 1 {
		shown = append(shown[:len(shown)-2], shown[len(shown)-2]+" and "+shown[len(shown)-1])
	}
	return strings.Join(shown, ", ")
}
