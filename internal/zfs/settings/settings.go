// Package settings knows the names and values of the properties of ZFS and of the parameters of its module in OpenZFS 2.1 to 2.4, so that a
// typing error is found before anything runs. A later OpenZFS may have more of them: for names and values that only a later version could
// know, there is only a warning.
package settings

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// Newest is the version of OpenZFS whose names and values this release knows.
const Newest = "2.4"

// Answer says what is wrong with a setting, and what to write instead. Both fields are empty if the setting is known to be right.
type Answer struct {
	// Refusal says why no version of OpenZFS accepts it.
	Refusal string
	// Warning says why the versions that this release knows do not accept it.
	Warning string
}

func refused(format string, values ...any) Answer {
	return Answer{Refusal: fmt.Sprintf(format, values...)}
}

// values are the values that a property takes. check says what to write instead, or nothing if the value is one of them.
type values interface {
	check(value string) Answer
}

// words are the values of a property. more says that later versions may have more values, because OpenZFS has added some since its first
// release.
type words struct {
	known []string
	more  bool
	// text replaces a long list in messages.
	text string
}

func (w words) check(value string) Answer {
	if slices.Contains(w.known, value) {
		return Answer{}
	}
	list := w.text
	if list == "" {
		list = listed(w.known)
	}
	meant := spelling.Slip(value, w.known)
	if meant == "" && w.more { // no newer OpenZFS accepts yes, true, no or false either
		meant = Switch(value, w.known)
	}
	if meant != "" {
		return refused("%q is not one of its values: did you mean %s? It takes %s", value, meant, list)
	}
	if w.more {
		return Answer{Warning: fmt.Sprintf("%q is not one of its values up to OpenZFS %s, which takes %s: if the OpenZFS of the node does not "+
			"take it either, no run can begin", value, Newest, list)}
	}
	return refused("%q is not one of its values: write %s", value, list)
}

// Switch returns on for yes and true, and off for no and false, if that is one of the values. Otherwise it is empty.
func Switch(value string, known []string) string {
	meant := map[string]string{"yes": "on", "true": "on", "no": "off", "false": "off"}[strings.ToLower(value)]
	if !slices.Contains(known, meant) {
		return ""
	}
	return meant
}

// power is a size that is a power of two.
type power struct{ from, to uint64 }

func (p power) check(value string) Answer {
	bytes, valid := Bytes(value)
	if !valid || bytes < p.from || bytes > p.to || bits.OnesCount64(bytes) != 1 {
		return refused("%q is not one of its values: write a power of two from %s to %s, such as 8k or 128k", value, Size(p.from), Size(p.to))
	}
	return Answer{}
}

// size is any size, or one of the words.
type size struct {
	words []string
	to    uint64
}

func (s size) check(value string) Answer {
	bytes, valid := Bytes(value)
	switch {
	case slices.Contains(s.words, value):
		return Answer{}
	case !valid:
		return refused("%q is not one of its values: write a size such as 10G%s", value, orWords(s.words))
	case s.to > 0 && bytes > s.to:
		return refused("%q is too large: write at most %s", value, Size(s.to))
	}
	return Answer{}
}

// count is a whole number, or one of the words.
type count struct{ words []string }

func (c count) check(value string) Answer {
	if _, err := strconv.ParseUint(value, 10, 64); err != nil && !slices.Contains(c.words, value) {
		return refused("%q is not one of its values: write a whole number%s", value, orWords(c.words))
	}
	return Answer{}
}

// anything accepts any value: only the node can judge it.
type anything struct{}

func (anything) check(string) Answer { return Answer{} }

var sizePattern = regexp.MustCompile(`^([0-9]+)([kmgtp]?)(i?b)?$`)

// Bytes reads a size as ZFS does: 8k, 8K, 8KiB and 8192 are the same. It does not accept fractions.
func Bytes(text string) (bytes uint64, valid bool) {
	parts := sizePattern.FindStringSubmatch(strings.ToLower(text))
	if parts == nil || parts[2] == "" && parts[3] == "ib" {
		return 0, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 64)
	shift := uint(0)
	if parts[2] != "" {
		shift = 10 * uint(strings.Index("kmgtp", parts[2])+1) //nolint:gosec // at most 50
	}
	if err != nil || bits.Len64(number)+int(shift) > 64 { //nolint:gosec // at most 50
		return 0, false
	}
	return number << shift, true
}

// Size writes a number of bytes as ZFS users do, such as 128k.
func Size(bytes uint64) string {
	unit := 0
	for ; bytes >= 1024 && bytes%1024 == 0 && unit < 5; unit++ {
		bytes /= 1024
	}
	return strconv.FormatUint(bytes, 10) + []string{"", "k", "M", "G", "T", "P"}[unit]
}

// listed returns "a, b or c".
func listed(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func orWords(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", or " + listed(names)
}

// Plain returns a value of a property in the one form that all spellings of it have: sizes in bytes, such as 8192 for 8k and 8K.
func Plain(name, value string) string {
	switch properties[name].values.(type) {
	case power, size:
		if bytes, valid := Bytes(value); valid {
			return strconv.FormatUint(bytes, 10)
		}
	}
	return value
}

// alias holds values that are other names of a value.
var alias = map[string]map[string]string{
	"compression": {"on": "lz4", "gzip": "gzip-6", "zstd": "zstd-3", "zstd-fast": "zstd-fast-1"},
	"checksum":    {"on": "fletcher4"},
	"dedup":       {"on": "sha256"},
	"acltype":     {"noacl": "off", "disabled": "off", "posixacl": "posix"},
}

// Alias returns the value that acts as the given one in the versions that this release knows. A later version may give the name to another
// value.
func Alias(name, value string) string {
	if other := alias[name][value]; other != "" {
		return other
	}
	return Plain(name, value)
}
