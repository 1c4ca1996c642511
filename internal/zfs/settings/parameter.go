package settings

import (
	"cmp"
	_ "embed" // the list of parameters
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// parameterList has the names of the parameters of the ZFS modules in OpenZFS 2.1 to 2.4, under headings that say what they take.
//
//go:embed parameters.txt
var parameterList string

// The kinds of values of a parameter.
const (
	aNumber        = "number"
	onlyWhenLoaded = "load" // others take a word
)

var (
	parameters, parameterNames = readParameters(parameterList)
	// plainNumber does not match numbers that the kernel reads differently: it takes 010 for 8.
	plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
)

func readParameters(list string) (kinds map[string]string, names []string) {
	kinds = map[string]string{}
	kind := ""
	for _, line := range strings.Fields(list) {
		if heading, is := strings.CutSuffix(line, ":"); is {
			kind = heading
			continue
		}
		kinds[line] = kind
		names = append(names, line)
	}
	return kinds, names
}

// Parameter says what is wrong with a module parameter.
func Parameter(name, value string) Answer {
	switch kind, found := parameters[name]; {
	case found && kind == onlyWhenLoaded:
		return refused("it can only be set when the module is loaded: set it in /etc/modprobe.d of the node")
	case found && kind == aNumber:
		return cmp.Or(checkNumber(value), checkBound(name, value))
	case found:
		return Answer{}
	}
	if meant := spelling.Slip(name, parameterNames); meant != "" {
		return Answer{Warning: fmt.Sprintf("there is no such module parameter up to OpenZFS %s: did you mean %s? A node that does not have it "+
			"refuses it", Newest, meant)}
	}
	return Answer{Warning: fmt.Sprintf("there is no such module parameter up to OpenZFS %s: a node that does not have it refuses it", Newest)}
}

func checkNumber(value string) Answer {
	if plainNumber.MatchString(value) {
		return Answer{}
	}
	if bytes, valid := Bytes(value); valid {
		return refused("%q is not a whole number, and the kernel takes no units: write '%d'", value, bytes)
	}
	return refused("%q is not one of its values: write a whole number in plain digits", value)
}

// least are the values below which ZFS ignores a bound of the ARC, so that the agent sets it back. 0 leaves the bound to ZFS.
var least = map[string]uint64{"zfs_arc_max": 64 << 20, "zfs_arc_min": 32 << 20}

func checkBound(name, value string) Answer {
	if number, err := strconv.ParseUint(value, 10, 64); err != nil || number == 0 || number >= least[name] {
		return Answer{}
	}
	return refused("ZFS ignores less than %d MiB: write '%d' or more", least[name]>>20, least[name])
}
