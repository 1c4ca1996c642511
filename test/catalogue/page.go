package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The result of a row stands between these lines of its README.
const (
	beginMark = "<!-- lab result: written by make catalogue -->"
	endMark   = "<!-- end of lab result -->"
)

// writePages brings the README of each row, and docs/catalogue.md, up to date with the results that are kept.
func writePages(root string, rows []row) error {
	for _, one := range rows {
		file := filepath.Join(root, "experiments", one.Folder, "README.md")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		changed, err := withResult(string(text), section(one))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := replace(file, []byte(changed)); err != nil {
			return err
		}
	}
	return replace(filepath.Join(root, "docs", "catalogue.md"), []byte(catalogue(rows)))
}

// withResult replaces the part between the marks, or appends it.
func withResult(text, part string) (string, error) {
	begin, end := strings.Index(text, beginMark), strings.Index(text, endMark)
	switch {
	case begin < 0 && end < 0:
		return strings.TrimRight(text, "\n") + "\n\n" + part, nil
	case begin < 0 || end < begin || strings.Count(text, beginMark) != 1 || strings.Count(text, endMark) != 1:
		return "", errors.New("the marks of the lab's result are broken: remove both lines and what is between them")
	}
	return text[:begin] + part + strings.TrimPrefix(text[end+len(endMark):], "\n"), nil
}

// section returns the part of a row's README about the lab.
func section(one row) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n## What the lab showed\n", beginMark)
	if one.Result == nil {
		fmt.Fprintf(&s, "Not run yet: `%s`.\n%s\n", command(one), endMark)
		return s.String()
	}
	found := one.Result
	fmt.Fprintf(&s, "**%s**: %s\n\n", found.Verdict, cell(found.Message))
	if found.Inputs != one.Inputs {
		s.WriteString("The experiment, its overlay or its disks were changed since.\n\n")
	}
	if len(found.Gates) > 0 {
		s.WriteString("| gate | verdict | measured |\n|---|---|---|\n")
		for _, gate := range found.Gates {
			fmt.Fprintf(&s, "| `%s` | %s | %s |\n", gate.Name, gate.Verdict, cell(gate.Message))
		}
		s.WriteString("\n")
	}
	if len(found.Figures) > 0 {
		s.WriteString("| figure | variant | median | smallest to largest | runs |\n|---|---|---|---|---|\n")
		for _, f := range found.Figures {
			fmt.Fprintf(&s, "| `%s` | %s | %d %s | %d to %d | %d |\n", f.Name, cell(f.Variant), f.Median, f.Unit, f.Min, f.Max, f.Runs)
		}
		s.WriteString("\n")
	}
	s.WriteString("| | |\n|---|---|\n")
	fmt.Fprintf(&s, "| command | `%s` |\n", command(one))
	if len(found.Lab) > 0 {
		fmt.Fprintf(&s, "| lab | `%s` |\n", strings.Join(found.Lab, "`, `"))
	}
	fmt.Fprintf(&s, "| date, commit | %s, %s |\n", found.Date, found.Commit)
	fmt.Fprintf(&s, "| versions | %s |\n", versions(found))
	fmt.Fprintf(&s, "| runs | %d, %d of them valid, in %s |\n%s\n", found.Runs, found.ValidRuns, found.Took, endMark)
	return s.String()
}

// catalogue returns the text of docs/catalogue.md.
func catalogue(rows []row) string {
	var s strings.Builder
	run := 0
	for _, one := range rows {
		if one.Result != nil {
			run++
		}
	}
	fmt.Fprintf(&s, `# What the catalogue showed
Each row of the [catalogue of experiments](../experiments/README.md) has an overlay for the [lab](tasks/lab.md).
`+"`make catalogue`"+` runs them there, one after another, and writes this page: do not edit it.

A shape is a ratio or an order, not absolute numbers. The shape that is expected comes from field reports, and belongs to their storage.
The shape that was measured belongs to the lab, which has small disks with limits, and one to six repetitions. A ratio is that of the two
medians in the message of a gate, the first to the second; brackets say where it lies. The README of the row has all of it. Failed means
only that the lab does not show the effect. Real storage may.

`)
	fmt.Fprintf(&s, "Rows that have been run: %d of %d.\n\n", run, len(rows))
	s.WriteString("| row | question | shape expected | shape measured | verdict | date | versions | commit |\n|---|---|---|---|---|---|---|---|\n")
	for _, one := range rows {
		fmt.Fprintf(&s, "| [%s](../experiments/%s) | %s | %s | ", one.ID, one.Folder, one.Question, cell(one.Shape))
		if one.Result == nil {
			s.WriteString("not run yet | | | | |\n")
			continue
		}
		found := one.Result
		verdict := found.Verdict
		if found.Inputs != one.Inputs {
			verdict += ", of an earlier version of the row"
		}
		fmt.Fprintf(&s, "%s | %s | %s | %s | %s |\n", measured(found), verdict, found.Date, versions(found), found.Commit)
	}
	s.WriteString(twice(rows))
	return s.String()
}

// twice shows both results of the rows that have run twice.
func twice(rows []row) string {
	var s strings.Builder
	count, same := 0, 0
	for _, one := range rows {
		if !one.repeated() {
			continue
		}
		count++
		if one.Result.Verdict == one.Earlier.Verdict {
			same++
		}
		fmt.Fprintf(&s, "| [%s](../experiments/%s) | %s | %s |\n", one.ID, one.Folder, once(one.Earlier), once(one.Result))
	}
	return fmt.Sprintf(`
## Does it repeat?
`+"`make catalogue AGAIN=1`"+` runs rows a second time, with the same experiment, overlay and disks.

Rows that have been run twice: %d. The verdict was the same in %d of them.

| row | first | second |
|---|---|---|
%s`, count, same, s.String())
}

func once(found *result) string {
	return fmt.Sprintf("%s (%s, %s)<br>%s", found.Verdict, found.Date, found.Commit, measured(found))
}

func measured(found *result) string {
	var gates []string
	for _, gate := range found.Gates {
		text := gate.shown()
		if text != gate.Verdict && gate.Verdict != "Passed" {
			text += " (" + gate.Verdict + ")"
		}
		gates = append(gates, fmt.Sprintf("`%s`: %s", gate.Name, cell(text)))
	}
	return strings.Join(gates, "<br>")
}

func versions(found *result) string {
	var all []string
	for _, version := range versionKeys {
		if values := slices.Clone(found.Versions[version.key]); len(values) > 0 {
			all = append(all, version.title+" "+cell(strings.Join(values, " and ")))
		}
	}
	return strings.Join(all, ", ")
}

// command returns the command that runs a row, even if it has a result.
func command(one row) string { return "make catalogue ROW=" + one.ID + " FORCE=1" }

// cell escapes text so that it neither ends a cell of a table nor becomes markup.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}
