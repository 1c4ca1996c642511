package results

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ignoredKeys are the parts of the environment that differ each time, or follow from others: names that the kernel and the cluster
// give, seeds, and how something ended. Everything else counts, also what a later release may add. A test compares them with
// docs/tasks/baselines.md.
var ignoredKeys = []string{
	"beside.outcome", "device.*.name", "devices.foundBy", "mount.root", "mount.source", "operation.pool", "postgres.rampUpSeed",
	"postgres.seed", "steadyState", "zfs.dataset", "zfs.pool",
}

// aboutKeys are numbers that are never quite the same: the kernel takes some memory before it counts the rest, and derives from that.
var aboutKeys = []string{"memory.bytes", "zfs.parameter.zfs_dirty_data_max"}

// alikePercent is how far apart values of aboutKeys may be.
const alikePercent = 1

// essences are the parts of a value that count, by key.
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

// Difference is a part of the environment that is not as it was.
type Difference struct {
	// Key in the environment.
	Key string
	// Baseline and Current are the values then and now; none if it was not known.
	Baseline []string
	Current  []string
}

// maxShownBytes is how much of a value a sentence shows.
const maxShownBytes = 120

// String is "kernel: baseline 6.12.1, now 6.12.4".
func (d Difference) String() string {
	switch {
	case len(d.Baseline) == 0:
		return fmt.Sprintf("%s: not in the baseline, now %s", d.Key, inWords(d.Current))
	case len(d.Current) == 0:
		return fmt.Sprintf("%s: baseline %s, now not known", d.Key, inWords(d.Baseline))
	}
	return fmt.Sprintf("%s: baseline %s, now %s", d.Key, inWords(d.Baseline), inWords(d.Current))
}

// Differences are the parts of the environment by which results are not from like hardware and like versions, sorted by key: numbers
// from there and here must not be compared. A part that only one side knows is one too. allow names keys that may differ: whole
// ones, the beginning of keys with a "." or "*" behind it, and "*" inside for any text.
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

// DifferenceAllowed says whether one of the entries of allow speaks of the key.
func DifferenceAllowed(key string, allow []string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		if strings.HasSuffix(pattern, ".") {
			pattern += "*"
		}
		return matches(pattern, key)
	})
}

// DifferencesInWords is one sentence of so many differences at most, and of how many more there are.
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
	return slices.ContainsFunc(ignoredKeys, func(pattern string) bool { return matches(pattern, key) })
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

// sameValues compares what counts of the values of a key, in any order.
func sameValues(key string, baseline, current []string) bool {
	if len(baseline) == 0 || len(current) == 0 {
		return len(baseline) == len(current)
	}
	if slices.Equal(distinct(key, baseline), distinct(key, current)) {
		return true
	}
	return slices.Contains(aboutKeys, key) && aboutEqual(slices.Concat(baseline, current))
}

// distinct are the values of a key that differ in what counts, sorted.
func distinct(key string, values []string) []string {
	found := slices.Clone(values)
	for _, of := range essences {
		if matches(of.key, key) {
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

// aboutEqual says that all values are whole numbers and lie close together.
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

// countCPUs makes "0-3,8" "5 CPUs": which ones are free differs from pod to pod.
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

// deviceNumber is how the kernel names the device of a limit.
var deviceNumber = regexp.MustCompile(`(^| )\d+:\d+ `)

func withoutDeviceNumbers(limits string) string { return deviceNumber.ReplaceAllString(limits, "$1") }

// changingOptions are the mount options that say where something is, or under which label.
var changingOptions = []string{
	"addr", "clientaddr", "context", "defcontext", "fscontext", "fsid", "mountaddr", "mountport", "name", "port", "rootcontext", "secret",
}

func withoutAddresses(options string) string {
	kept := slices.DeleteFunc(strings.Split(options, ","), func(option string) bool {
		name, _, assigns := strings.Cut(option, "=")
		// The label of a pod, context="...:c1,c2", is itself cut at its comma.
		return assigns && slices.Contains(changingOptions, name) || mcsCategory.MatchString(option)
	})
	return strings.Join(kept, ",")
}

// mcsCategory is the second half of a label's pair of categories.
var mcsCategory = regexp.MustCompile(`^c\d+"?$`)

// inWords is "a", or "a and b", shortened.
func inWords(values []string) string {
	shown := make([]string, 0, len(values))
	for _, value := range values {
		shown = append(shown, shorten(value, maxShownBytes))
	}
	if len(shown) > 1 {
		shown = append(shown[:len(shown)-2], shown[len(shown)-2]+" and "+shown[len(shown)-1])
	}
	return strings.Join(shown, ", ")
}
