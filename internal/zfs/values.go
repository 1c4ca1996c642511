package zfs

import (
	"math/big"
	"regexp"
	"strings"
)

var sizePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kmgtpe]?)(?:i?b)?$`)

// SameValue compares a requested value with one that ZFS prints in exact numbers: 8k is the same as 8192, and no limit is 0 or none.
func SameValue(wanted, is string) bool {
	if wanted == is {
		return true
	}
	a, isSize := bytesOf(wanted)
	b, alsoSize := bytesOf(is)
	return isSize && alsoSize && a.Cmp(b) == 0
}

func bytesOf(text string) (*big.Rat, bool) {
	if text == "none" {
		return new(big.Rat), true
	}
	parts := sizePattern.FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		return nil, false
	}
	value, valid := new(big.Rat).SetString(parts[1])
	if !valid {
		return nil, false
	}
	power := 0
	if parts[2] != "" {
		power = strings.Index("kmgtpe", parts[2]) + 1
	}
	return value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*power)))), true
}
