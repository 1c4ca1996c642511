package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// aliases maps names that users may expect to the fields of the API.
var aliases = map[string]string{"l2arc": "cache", "slog": "log", "zil": "log", "properties": "dataset.properties",
	"parameters": "moduleParameters"}

// ofVdev are fields of a vdev, and what users call its devices.
var ofVdev = []string{"type", "devices", "disks", "draidDataDevices", "draidSpares"}

// instead says what to write instead of an unknown field. Only a field with a single value can be a misplaced setting.
func instead(name string, value any, names []string) string {
	if slices.Contains(names, "vdevs") && slices.Contains(ofVdev, name) {
		return "write it in a vdev, such as vdevs: [{type: mirror, devices: [/dev/disk/by-id/A, /dev/disk/by-id/B]}]"
	}
	alias, _, _ := strings.Cut(aliases[name], ".")
	switch value.(type) {
	case map[string]any, []any:
	default:
		if place := placeOf(name, names); place != "" {
			return "write " + place
		}
	}
	if slices.Contains(names, alias) {
		return "write " + aliases[name]
	}
	return spelling.Instead(name, names)
}

// placeOf returns where to write a ZFS setting that was found among the fields of a target, a variant, a pool or a dataset. It returns an
// empty string for other names, and among other fields.
func placeOf(name string, names []string) string {
	ofStorage := func(one string) bool { return slices.Contains([]string{"dataset", "pool", "vdevs", "fsType"}, one) }
	if !slices.ContainsFunc(names, ofStorage) {
		return ""
	}
	if slices.Contains(settings.Fields, name) {
		return "dataset." + name
	}
	place := settings.Place(name)
	if group, found := strings.CutSuffix(place, "."+name); found && group != "pool" {
		return "it under " + strings.Replace(group, "dataset", "dataset.properties", 1)
	}
	return place
}

// valueIn returns the value of a field, or nil if it is missing.
func valueIn(value any, steps []string) any {
	for _, step := range steps {
		switch inside := value.(type) {
		case map[string]any:
			value = inside[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(inside) {
				return nil
			}
			value = inside[i]
		default:
			return nil
		}
	}
	return value
}

// namesOfTypes are words for the types of the schema.
var namesOfTypes = map[string]string{
	"object": "a map of fields", "array": "a list", "string": "text", "integer": "a whole number", "number": "a number",
	"boolean": "true or false", "null": "nothing",
}

// messageOf returns the message of the API server. If the message does not say what to write instead, messageOf adds it.
func (k *kindSchema) messageOf(wrong *field.Error) string {
	switch wrong.Type {
	case field.ErrorTypeTypeInvalid:
		return typeMessage(wrong)
	case field.ErrorTypeNotSupported:
		return wrong.ErrorBody() + supported(wrong)
	case field.ErrorTypeDuplicate:
		return duplicate(wrong)
	case field.ErrorTypeInvalid:
		if hint := nameLike(wrong); hint != "" {
			return fmt.Sprintf("Invalid value: %q: %s", wrong.BadValue, hint)
		}
		if hint := k.bounds(wrong); hint != "" {
			return fmt.Sprintf("Invalid value: %v: %s", wrong.BadValue, hint)
		}
		if hint := noUnit(wrong); hint != "" {
			return fmt.Sprintf("Invalid value: %q: %s", wrong.BadValue, hint)
		}
	default: // the message of the API server is good enough
	}
	return wrong.ErrorBody()
}

var (
	disksOnly = regexp.MustCompile(`\.(cache|spare)\[[0-9]+\]$`)
	vdevsOnly = regexp.MustCompile(`\.(vdevs|log|special)\[[0-9]+\]$`)
)

// mapsOfFields are examples of fields that have fields of their own, where users write a single value or a list.
var mapsOfFields = map[string]string{
	"adaptive": "{maxRepetitions: 12}", "baseline": "{configMap: {name: nightly-baseline}}", "configMap": "{name: nightly-baseline}",
	"fill": "{to: 80%}", "matrix": "{storageClass.name: [fast, slow]}", "schedule": `{cron: "0 3 * * *"}`,
	"storageClass": "{name: fast, size: 20Gi}", "target": "{storageClass: {name: fast, size: 20Gi}}", "workload": "{oltp: {duration: 60s}}",
}

// typeMessage returns the message for a value of the wrong type.
func typeMessage(wrong *field.Error) string {
	_, types, found := strings.Cut(wrong.Detail, "must be of type ")
	wanted, given, also := strings.Cut(types, ": ")
	wanted, given = namesOfTypes[wanted], namesOfTypes[strings.Trim(given, `"`)]
	if !found || !also || wanted == "" || given == "" {
		return wrong.ErrorBody()
	}
	if list := disksOnly.FindStringSubmatch(wrong.Field); list != nil {
		return fmt.Sprintf("%s is a list of disks: write %s: [DISK]", list[1], list[1])
	}
	if list := vdevsOnly.FindStringSubmatch(wrong.Field); list != nil {
		return fmt.Sprintf("write a map of fields instead of %s, such as %s: [{type: stripe, devices: [DISK]}]", given, list[1])
	}
	message, name := fmt.Sprintf("write %s instead of %s", wanted, given), wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
	if example := mapsOfFields[name]; example != "" && wanted == namesOfTypes["object"] {
		message += fmt.Sprintf(", such as %s: %s", name, example)
	}
	return message
}

// duplicate returns the message for an entry of a list that has another one with the same name or value.
func duplicate(wrong *field.Error) string {
	keys, _ := wrong.BadValue.(map[string]any)
	if name, is := keys["name"].(string); is && len(keys) == 1 {
		return fmt.Sprintf("%s is the name of another one: give each a name of its own", name)
	}
	return wrong.ErrorBody() + ": remove one of them"
}

// nameLike says what to write instead, if the name of an object is not valid. Otherwise it returns an empty string.
func nameLike(wrong *field.Error) string {
	given, _ := wrong.BadValue.(string)
	if wrong.Field != "metadata.name" && wrong.Field != "metadata.namespace" || !strings.Contains(wrong.Detail, rfcNames) {
		return ""
	}
	return nameHint(given, wrong.Detail)
}

// rfcNames is in messages that show a regular expression.
const rfcNames = "RFC 1123"

// nameHint explains what is wrong with a name, with a valid one like it if the message only shows a regular expression.
func nameHint(given, message string) string {
	if !strings.Contains(message, rfcNames) {
		return message
	}
	hint := "write lower-case letters, digits and -, with a letter or digit at both ends"
	if like := naming.Like(given); like != "" {
		hint += ", such as " + like
	}
	return hint
}

var inQuotes = regexp.MustCompile(`"([^"]*)"`)

// supported says which of the supported values was most likely meant. It returns an empty string if none is similar.
func supported(wrong *field.Error) string {
	given := fmt.Sprint(wrong.BadValue)
	var values []string
	for _, value := range inQuotes.FindAllStringSubmatch(wrong.Detail, -1) {
		values = append(values, value[1])
	}
	switch meant := spelling.Slip(given, values); {
	case meant != "":
		return ": write " + meant
	case strings.HasSuffix(wrong.Field, ".compare.to"):
		return fmt.Sprintf("; to compare with a variant write to: Variant, variant: %s", given)
	}
	return ""
}

// bounds says which numbers a field accepts, if the given number is out of range.
func (k *kindSchema) bounds(wrong *field.Error) string {
	if !strings.Contains(wrong.Detail, " in body should be ") || !strings.Contains(wrong.Detail, " than or equal to ") {
		return ""
	}
	at := k.structural
	for _, step := range pathSteps(problemField(wrong)) {
		if at = member(at, step); at == nil {
			return ""
		}
	}
	return numbers(at.ValueValidation)
}

func numbers(of *schema.ValueValidation) string {
	switch {
	case of == nil || of.Minimum == nil && of.Maximum == nil:
		return ""
	case of.Maximum == nil:
		return "write a number of at least " + plainNumber(*of.Minimum)
	case of.Minimum == nil:
		return "write a number of at most " + plainNumber(*of.Maximum)
	}
	return fmt.Sprintf("write a number between %s and %s", plainNumber(*of.Minimum), plainNumber(*of.Maximum))
}

// plainNumber writes a number without an exponent.
func plainNumber(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// byteUnit matches a size with a unit that Kubernetes does not have, such as 20GB.
var byteUnit = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKmMgGtTpP])([iI]?[bB])$`)

// noUnit says how to write a size that ends with B. For a block size it suggests only a binary unit, because it must be a power of two.
func noUnit(wrong *field.Error) string {
	given, _ := wrong.BadValue.(string)
	parts := byteUnit.FindStringSubmatch(given)
	if parts == nil || !strings.Contains(wrong.Detail, "quantity") && !strings.Contains(wrong.Detail, "block size") {
		return ""
	}
	unit := strings.ToUpper(parts[2])
	hint := fmt.Sprintf("%s is not a valid unit: write %s%si", parts[2]+parts[3], parts[1], unit)
	if strings.Contains(wrong.Detail, "block size") {
		return hint
	}
	return fmt.Sprintf("%s or %s%s", hint, parts[1], strings.Replace(unit, "K", "k", 1))
}

// switchAt returns on or off for a boolean that was written as the value of a property, if the property accepts on and off. Otherwise it
// returns an empty string.
func switchAt(at, written string) string {
	steps := pathSteps(at)
	if _, err := strconv.Atoi(steps[len(steps)-1]); err == nil {
		steps = steps[:len(steps)-1]
	}
	meant := settings.Switch(written, []string{"on", "off"})
	if len(steps) < 2 || meant == "" || !slices.Contains([]string{"properties", "rootProperties", "matrix", "set"}, steps[len(steps)-2]) {
		return ""
	}
	name := steps[len(steps)-1]
	name = name[strings.LastIndexByte(name, '.')+1:]
	for _, check := range []func(name, value string) settings.Answer{settings.Dataset, settings.Pool} {
		if check(name, written).Refusal != "" && check(name, meant) == (settings.Answer{}) {
			return meant
		}
	}
	return ""
}

// unlessImplied omits problems that follow from others: unknown fields of a value of the wrong type, and the number of fields of a parent
// with an unknown field.
func unlessImplied(unknown []problem, invalid field.ErrorList) (left []problem, rest field.ErrorList) {
	parents := map[string]bool{}
	for _, one := range unknown {
		if !slices.ContainsFunc(invalid, func(wrong *field.Error) bool {
			below, within := strings.CutPrefix(one.field, problemField(wrong))
			return wrong.Type == field.ErrorTypeTypeInvalid && within && strings.IndexAny(below, ".[") == 0
		}) {
			left = append(left, one)
		}
		parents[one.field[:max(0, strings.LastIndexAny(one.field, ".["))]] = true
	}
	for _, wrong := range invalid {
		ofNumber := strings.Contains(wrong.Detail, "should have at least 1 properties") ||
			strings.Contains(wrong.Detail, "exactly one of the fields")
		if !ofNumber || !parents[problemField(wrong)] {
			rest = append(rest, wrong)
		}
	}
	return left, rest
}
