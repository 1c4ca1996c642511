package workload

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// kindOfSetting knows which values a setting of PostgreSQL takes. wrong says what to write instead; it is empty if the value is valid.
type kindOfSetting interface{ wrong(value string) string }

// pgSettings are those that the API allows, as PostgreSQL 15 to 18 define them.
var pgSettings = map[string]kindOfSetting{
	"shared_buffers":               pgSize{plain: 8 << 10, from: "128kB", to: "8589934584kB"},
	"wal_level":                    pgWords{"minimal", "replica", "logical"},
	"wal_buffers":                  pgSize{plain: 8 << 10, from: "0", to: "2097144kB"},
	"wal_compression":              append(pgWords{"pglz", "lz4", "zstd"}, pgBool...),
	"wal_sync_method":              pgWords{"fsync", "fdatasync", "open_sync", "open_datasync"}, // on Linux
	"wal_init_zero":                pgBool,
	"wal_recycle":                  pgBool,
	"min_wal_size":                 pgSize{plain: 1 << 20, from: "32MB", to: "2147483647MB"}, // at least two segments
	"max_wal_size":                 pgSize{plain: 1 << 20, from: "32MB", to: "2147483647MB"},
	"checkpoint_timeout":           pgTime{from: 30, to: 86400},
	"checkpoint_completion_target": pgNumber{to: 1, text: "0 to 1, such as 0.9"},
	"full_page_writes":             pgBool,
	"synchronous_commit":           append(pgWords{"local", "remote_write", "remote_apply"}, pgBool...),
	"commit_delay":                 pgNumber{to: 100000, whole: true, text: "microseconds without a unit, 0 to 100000"},
	"effective_io_concurrency":     pgNumber{to: 1000, whole: true, text: "a whole number, 0 to 1000"},
	"random_page_cost":             pgNumber{to: 1e300, text: "a number, such as 1.1"},
}

// WrongSetting says what is wrong with a setting of PostgreSQL, and what to write instead. Empty if the server would take it.
func WrongSetting(name, value string) string {
	if known, found := pgSettings[name]; found {
		return known.wrong(value)
	}
	names := slices.Sorted(maps.Keys(pgSettings))
	if meant := spelling.Nearest(name, names); meant != "" {
		return "this setting cannot be set here: did you mean " + meant + "?"
	}
	return "this setting cannot be set here: write one of " + strings.Join(names, ", ")
}

func notOne(value, instead string) string {
	return fmt.Sprintf("%q is not one of its values: write %s", value, instead)
}

// pgWords are the values of a setting, in upper or lower case. Those of pgBool all mean on or off.
type pgWords []string

var pgBool = pgWords{"on", "off", "true", "false", "yes", "no", "1", "0"}

func (w pgWords) wrong(value string) string {
	if slices.Contains(w, strings.ToLower(value)) {
		return ""
	}
	shown := slices.DeleteFunc(slices.Clone(w), func(word string) bool { return slices.Contains(pgBool[2:], word) })
	last := len(shown) - 1
	return notOne(value, strings.Join(shown[:last], ", ")+" or "+shown[last])
}

// pgNumber is a number without a unit, from 0.
type pgNumber struct {
	to    float64
	whole bool
	text  string
}

var plainNumber = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)

func (n pgNumber) wrong(value string) string {
	number, err := strconv.ParseFloat(value, 64)
	if err != nil || !plainNumber.MatchString(value) || number > n.to || n.whole && strings.ContainsAny(value, ".eE") {
		return notOne(value, n.text)
	}
	return ""
}

// withUnit matches a number with an optional unit.
var withUnit = regexp.MustCompile(`^([0-9]{1,18}(?:\.[0-9]{1,9})?)([A-Za-z]*)$`)

// inUnits reads a number with one of the units, which are case-sensitive. A number without a unit is in the plain unit.
func inUnits(value string, plain float64, units map[string]float64) (amount float64, valid bool) {
	parts := withUnit.FindStringSubmatch(value)
	if parts == nil {
		return 0, false
	}
	unit, known := units[parts[2]]
	if parts[2] == "" {
		unit, known = plain, true
	}
	number, _ := strconv.ParseFloat(parts[1], 64) // the pattern matches only numbers
	return number * unit, known
}

// inUnitOf returns the number of the value with the unit that was most likely meant, judging by the first letter of the given unit. It
// returns otherwise if there is no such unit.
func inUnitOf(value, otherwise string, meant map[byte]string) string {
	parts := withUnit.FindStringSubmatch(value)
	if parts == nil || parts[2] == "" || meant[strings.ToLower(parts[2])[0]] == "" {
		return otherwise
	}
	return parts[1] + meant[strings.ToLower(parts[2])[0]]
}

// pgSize is a size. A number without a unit is a multiple of plain bytes.
type pgSize struct {
	plain    float64
	from, to string
}

var pgBytes = map[string]float64{"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

func (s pgSize) wrong(value string) string {
	bytes, valid := inUnits(value, s.plain, pgBytes)
	from, _ := inUnits(s.from, s.plain, pgBytes)
	to, _ := inUnits(s.to, s.plain, pgBytes)
	switch {
	case !valid:
		return notOne(value, "a size in kB, MB, GB or TB, such as "+
			inUnitOf(value, "1GB", map[byte]string{'k': "kB", 'm': "MB", 'g': "GB", 't': "TB"}))
	case bytes < from || bytes > to:
		return fmt.Sprintf("%q is out of its range: write a size from %s to %s, with its unit", value, s.from, s.to)
	}
	return ""
}

// pgTime is a time, with its limits in seconds. A number without a unit is in seconds.
type pgTime struct{ from, to float64 }

var pgSeconds = map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}

func (t pgTime) wrong(value string) string {
	seconds, valid := inUnits(value, 1, pgSeconds)
	switch {
	case !valid:
		return notOne(value, "a time in s, min, h or d, such as "+
			inUnitOf(value, "5min", map[byte]string{'s': "s", 'm': "min", 'h': "h", 'd': "d"}))
	case seconds < t.from || seconds > t.to:
		return fmt.Sprintf("%q is out of its range: write a time from %gs to %gs", value, t.from, t.to)
	}
	return ""
}
