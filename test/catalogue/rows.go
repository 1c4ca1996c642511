package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// row is one question of the catalogue.
type row struct {
	// ID is its name in the catalogue, such as S14.
	ID string
	// Question as experiments/README.md asks it.
	Question string
	// Folder in experiments/.
	Folder string
	// Shape that the field report saw, from the comment of experiment.yaml.
	Shape string
	// Lab has the variables of make with which the lab is made, sorted.
	Lab []string
	// Short marks the rows from which CI chooses one.
	Short bool
	// Inputs is a hash of what is measured: the experiment, its overlay and the lab's disks.
	Inputs string
	// Result is nil if the row has not run yet. Earlier is the result of the run before it, with the same inputs.
	Result, Earlier *result
}

// labVariables are what lab.env may set, besides SHORT=1.
var labVariables = []string{"NODES", "DISKS", "DISK_SIZE", "DISK_IOPS", "DISK_BPS", "LAB_FLAGS"}

// tableRow matches | S1 | Question? | [folder](folder) | uses | in experiments/README.md.
var tableRow = regexp.MustCompile(`(?m)^\| ([A-Z][0-9]+) \| (.+?) \| \[([^\]]+)\]\([^)]+\) \|`)

// loadRows reads the catalogue below root, in the order of its table.
func loadRows(root string) ([]row, error) {
	folder := filepath.Join(root, "experiments")
	table, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, match := range tableRow.FindAllStringSubmatch(string(table), -1) {
		one := row{ID: match[1], Question: match[2], Folder: match[3]}
		if err := one.load(filepath.Join(folder, one.Folder)); err != nil {
			return nil, fmt.Errorf("%s: %w", one.ID, err)
		}
		rows = append(rows, one)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s/README.md has no row like | S1 | question | [folder](folder) | uses |", folder)
	}
	return rows, nil
}

func (r *row) load(folder string) error {
	manifest, err := os.ReadFile(filepath.Join(folder, "experiment.yaml"))
	if err != nil {
		return err
	}
	if r.Shape, err = shapeOf(string(manifest)); err != nil {
		return err
	}
	settings, err := os.ReadFile(filepath.Join(folder, "lab", "lab.env"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.settings(settings); err != nil {
		return fmt.Errorf("lab/lab.env: %w", err)
	}
	if r.Inputs, err = hashOf(folder, r.Lab); err != nil {
		return err
	}
	if r.Result, err = readResult(filepath.Join(folder, "lab", resultFile)); err != nil {
		return err
	}
	r.Earlier, err = readResult(filepath.Join(folder, "lab", earlierFile))
	return err
}

// shapeOf returns the end of the comment at the top of a manifest, from "Shape:" on.
func shapeOf(manifest string) (string, error) {
	var shape []string
	for line := range strings.Lines(manifest) {
		text, comment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !comment {
			break
		}
		if begins, is := strings.CutPrefix(text, "Shape: "); is {
			shape = []string{begins}
		} else if shape != nil {
			shape = append(shape, text)
		}
	}
	if shape == nil {
		return "", errors.New("experiment.yaml: write a comment '# Shape: ...' at its begin")
	}
	return strings.Join(shape, " "), nil
}

// settings reads lab.env: a variable on each line.
func (r *row) settings(text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		switch {
		case found && name == "SHORT" && value == "1":
			r.Short = true
		case found && value != "" && slices.Contains(labVariables, name):
			r.Lab = append(r.Lab, line)
		default:
			return fmt.Errorf("%q: write SHORT=1, or a value for one of %s", line, strings.Join(labVariables, ", "))
		}
	}
	slices.Sort(r.Lab)
	return lines.Err()
}

// labDefault matches a line of the Makefile that the disks of a lab depend on.
var labDefault = regexp.MustCompile(`(?m)^(?:` + strings.Join(labVariables, "|") + `) \?=.*$`)

// hashOf covers everything that decides what is measured: the objects of all manifests, and the disks of the lab. Comments, and the order of
// fields, do not count.
func hashOf(folder string, settings []string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "lab", "*.yaml"))
	if err != nil {
		return "", err
	}
	makefile, err := os.ReadFile(filepath.Join(folder, "..", "..", "Makefile"))
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, line := range append(labDefault.FindAllString(string(makefile), -1), settings...) { // the row's settings win over the defaults
		_, _ = fmt.Fprintln(sum, line)
	}
	for _, file := range append([]string{filepath.Join(folder, "experiment.yaml")}, files...) {
		objects, err := objectsOf(file)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintln(sum, filepath.Base(file), objects)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// objectsOf returns the documents of a YAML file as JSON, each on its line.
func objectsOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var object any
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return lines.String(), nil
		} else if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		line, err := json.Marshal(object) // sorts the fields
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		lines.Write(append(line, '\n'))
	}
}

// shortName stands for one of the short rows.
const shortName = "short"

// choose returns the chosen rows: all, the named ones, or for "short" one short row that depends on the commit.
func choose(rows []row, names, commit string) ([]row, error) {
	wanted := strings.Fields(names)
	if len(wanted) == 0 {
		return rows, nil
	}
	if len(wanted) == 1 && wanted[0] == shortName {
		one, err := shortRow(rows, commit)
		return []row{one}, err
	}
	var chosen []row
	for _, name := range wanted {
		i := slices.IndexFunc(rows, func(r row) bool { return strings.EqualFold(r.ID, name) || r.Folder == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %s: write one of %s to %s, or short", name, rows[0].ID, rows[len(rows)-1].ID)
		}
		chosen = append(chosen, rows[i])
	}
	return chosen, nil
}

// shortRow returns the short row for a commit: over many commits, all short rows run.
func shortRow(rows []row, commit string) (row, error) {
	short := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.Short })
	number, err := strconv.ParseUint(commit[:min(8, len(commit))], 16, 64)
	if err != nil {
		return row{}, fmt.Errorf("commit %q is no hash", commit)
	}
	if len(short) == 0 {
		return row{}, errors.New("no row is short: write SHORT=1 into the lab/lab.env of some")
	}
	return short[number%uint64(len(short))], nil
}

// current reports whether a row has run with its present inputs.
func (r *row) current() bool {
	return r.Result != nil && r.Result.Inputs == r.Inputs && r.Result.Verdict != invalid
}

// repeated reports whether a row has run twice with its present inputs.
func (r *row) repeated() bool { return r.current() && r.Earlier != nil && r.Earlier.Inputs == r.Inputs }

// group are rows that run in the same lab, one after another.
type group struct {
	Lab  []string
	Rows []row
}

// groups returns the groups of rows, in the order of their first rows.
func groups(rows []row) []group {
	var all []group
	for _, one := range rows {
		i := slices.IndexFunc(all, func(g group) bool { return slices.Equal(g.Lab, one.Lab) })
		if i < 0 {
			all = append(all, group{Lab: one.Lab})
			i = len(all) - 1
		}
		all[i].Rows = append(all[i].Rows, one)
	}
	return all
}
