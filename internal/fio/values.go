package fio

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// values are what an option may be set to, and what to write instead of anything else.
type values struct {
	pattern *regexp.Regexp
	instead func(name, value string) string
}

// fio reads the digits at the beginning of a number, and ignores a fraction, a unit that it does not know, and a unit after a space: to
// fio, 1.5m is 1, and 30sec is 30 microseconds. So only numbers that it reads in full are allowed. A GiB is not: fio counts it as 1000^3.
var (
	size       = numbersOf(oneSize, inBytes, sizeHint)
	blockSizes = numbersOf(listOf(`[1-9][0-9]{0,8}[kmg]?b?`), inBytes, "write a whole number, with k or m if needed, such as 64k; for a "+
		"range, write bsrange=4k-64k")
	sizes      = numbersOf(listOf(oneSize), inBytes, sizeHint)
	sizeRange  = numbersOf(rangeOf(oneSize), inBytes, "write one size, or two with '-', such as 4k-64k")
	sizeRanges = numbersOf(listOf(rangeOf(oneSize)), inBytes, "write a range of sizes, such as 4k-64k")
	sizeShare  = numbersOf(oneSize+`|[0-9]{1,3}%`, inBytes, "write a whole number, with k, m or g if needed, such as 64m, "+
		"or a share such as 50%")
	count      = numbersOf(oneCount, inBytes, "write a whole number")
	counts     = numbersOf(listOf(oneCount), inBytes, "write a whole number")
	percentage = numbersOf(onePercentage, nil, "write a whole number from 0 to 100, without '%'")
	shares     = numbersOf(listOf(onePercentage), nil, "write a whole number from 0 to 100, without '%'")
	seconds    = numbersOf(duration, inSeconds, "write a whole number of seconds, or one with ms, s, m or h, such as 90s")
	microtimes = numbersOf(duration, inMicroseconds, "write a whole number of microseconds, or one with us, ms or s, such as 20ms")
	percentile = numbersOf(`[0-9]{1,3}(\.[0-9]{1,6})?`, nil, "write a number from 0 to 100, such as 99.9")
	flag       = values{anchored(`[01]?`), insteadOfFlag}
)

const (
	oneSize       = `[0-9]{1,18}[kmgtp]?b?`
	sizeHint      = "write a whole number, with k, m or g if needed, such as 64k"
	oneCount      = `[0-9]{1,18}[kmgt]?`
	onePercentage = `([0-9]|[1-9][0-9]|100)`
	duration      = `[0-9]{1,15}(us|usec|ms|msec|s|m|h|d)?`
)

func anchored(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?i:` + pattern + `)$`) }

// listOf is a list of up to three values, for reads, writes and trims. One that is left out keeps its default.
func listOf(one string) string { return one + `(,(` + one + `)?){0,2}|,` + one + `(,(` + one + `)?)?` }

func rangeOf(one string) string { return one + `([-:]` + one + `)?` }

// plain are values that are no numbers.
func plain(pattern, instead string) values {
	return values{anchored(pattern), func(string, string) string { return instead }}
}

// numbersOf are values with numbers. If a value is a number that fio does not read in full, instead gives the one that was meant.
func numbersOf(pattern string, in *units, general string) values {
	return values{anchored(pattern), func(_, value string) string {
		if meant := in.whole(value); meant != "" {
			return "fio does not read this number in full: write " + meant
		}
		return general
	}}
}

func insteadOfFlag(name, value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "y":
		return "write " + name + "=1"
	case "false", "no", "off", "n":
		return "write " + name + "=0"
	}
	return "write " + name + "=1 or " + name + "=0"
}

// units are the units of a kind of number, from the smallest to the largest, each with what it is in the smallest one. A number without a
// unit is in the unit named bare.
type units struct {
	names   []string
	factors []int64
	bare    string
	other   map[string]string
}

var (
	timeNames   = []string{"us", "ms", "s", "m", "h", "d"}
	timeFactors = []int64{1, 1e3, 1e6, 60e6, 3600e6, 86400e6}
	otherTimes  = map[string]string{"usec": "us", "usecs": "us", "msec": "ms", "msecs": "ms", "sec": "s", "secs": "s", "second": "s",
		"seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "day": "d",
		"days": "d"}
	inSeconds      = &units{timeNames, timeFactors, "s", otherTimes}
	inMicroseconds = &units{timeNames, timeFactors, "us", otherTimes}
	inBytes        = &units{[]string{"", "k", "m", "g", "t", "p"}, []int64{1, 1 << 10, 1 << 20, 1 << 30, 1 << 40, 1 << 50}, "",
		map[string]string{"b": "", "kb": "k", "ki": "k", "kib": "k", "mb": "m", "mi": "m", "mib": "m", "gb": "g", "gi": "g", "gib": "g",
			"tb": "t", "ti": "t", "tib": "t", "pb": "p", "pi": "p", "pib": "p"}}
	numberAndUnit = regexp.MustCompile(`^([0-9]{0,15}(?:\.[0-9]{1,6})?)\s*([a-zA-Z]*)$`)
)

// whole returns a whole number that is the given one, or close to it, or "" if there is none: then it is not a positive number with a unit
// that people use.
func (u *units) whole(text string) string {
	match := numberAndUnit.FindStringSubmatch(strings.TrimSpace(text))
	if u == nil || match == nil {
		return ""
	}
	amount, is := new(big.Rat).SetString(match[1])
	unit := strings.ToLower(match[2])
	if meant, other := u.other[unit]; other {
		unit = meant
	} else if unit == "" {
		unit = u.bare
	}
	at := slices.Index(u.names, unit)
	if !is || at < 0 || amount.Sign() <= 0 {
		return ""
	}
	amount.Mul(amount, new(big.Rat).SetInt64(u.factors[at]))
	for ; at > 0; at-- { // the largest unit in which it is a whole number
		if in := new(big.Rat).Quo(amount, new(big.Rat).SetInt64(u.factors[at])); in.IsInt() {
			return in.Num().String() + u.names[at]
		}
	}
	near := new(big.Int).Quo(amount.Num(), amount.Denom())
	if !amount.IsInt() && near.Cmp(big.NewInt(1000)) < 0 {
		return ""
	}
	return near.String() + u.names[0]
}
