package cli

import (
	"cmp"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The formats of validate.
const (
	formatText  = "text"
	formatSARIF = "sarif"
)

// judgementFormats print what validate has found.
var judgementFormats = map[string]func(*App, []judgement) error{
	formatText: (*App).sayJudgements,
	formatJSON: func(a *App, all []judgement) error { return a.printDocument(remarksOf(all), formatJSON) },
	formatSARIF: func(a *App, all []judgement) error {
		return a.printDocument(sarifOf(remarksOf(all), a.version()), formatJSON)
	},
}

// The severities of remarks, as SARIF has them.
const (
	severityError   = "error"
	severityWarning = "warning"
	severityNote    = "note"
)

// remark is one mistake, warning or note for a program.
type remark struct {
	File string `json:"file"`
	// Line is 0 if it is not known.
	Line int `json:"line,omitempty"`
	// Object is the kind and name of the manifest. Empty if the file has none.
	Object   string `json:"object,omitempty"`
	Severity string `json:"severity"`
	// Field is the path of the field. Empty for the manifest as a whole.
	Field string `json:"field,omitempty"`
	// Value is what the manifest has there, if that is a single value.
	Value   *string `json:"value,omitempty"`
	Message string  `json:"message"`
}

// remarksOf lists all mistakes, warnings and notes, without a limit for each manifest.
func remarksOf(all []judgement) []remark {
	found := []remark{}
	for _, judged := range all {
		if judged.unreadable != nil {
			found = append(found, unreadable(judged.file, judged.unreadable))
			continue
		}
		if judged.unbuilt {
			found = append(found, remark{File: judged.file, Severity: severityNote, Message: clean(buildIt(judged.file))})
		}
		for _, wrong := range judged.problems {
			found = append(found, judged.remark(severityError, wrong))
		}
		if judged.checked == nil {
			continue
		}
		for _, warning := range judged.checked.warnings {
			found = append(found, judged.remark(severityWarning, warning))
		}
		for _, note := range judged.checked.notes {
			found = append(found, judged.remark(severityNote, problem{message: note}))
		}
	}
	return found
}

func (j judgement) remark(severity string, of problem) remark {
	one := remark{File: j.file, Line: j.manifest.line(cmp.Or(of.field, "kind")), Object: clean(j.manifest.String()), Severity: severity,
		Field: clean(of.field), Message: clean(of.message)}
	if value, single := valueAt(j.manifest.positions, of.field); single && of.field != "" {
		value = clean(value)
		one.Value = &value
	}
	return one
}

// place matches the line number at the beginning of a message, after the name of the file.
var place = regexp.MustCompile(`(?s)^:(?:(\d+):)? *(.*)$`)

// unreadable returns a remark that says why a file has no manifests.
func unreadable(file string, err error) remark {
	one := remark{File: file, Severity: severityError, Message: clean(err.Error())}
	rest, found := strings.CutPrefix(err.Error(), file)
	if parts := place.FindStringSubmatch(rest); found && parts != nil {
		one.Line, _ = strconv.Atoi(parts[1]) // 0 if it is not known
		one.Message = clean(parts[2])
	}
	return one
}

// sarif is a document in the Static Analysis Results Interchange Format 2.1.0, which services for code review can read.
type sarif struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	} `json:"physicalLocation"`
	Logical []sarifName `json:"logicalLocations,omitempty"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifName struct {
	Name string `json:"fullyQualifiedName"`
}

// ruleOf names the rules of remarks, by severity.
var ruleOf = map[string]string{severityError: "mistake", severityWarning: "doubtful-setting", severityNote: "hint"}

var sarifRules = []sarifRule{
	{ruleOf[severityError], sarifText{"The API server or the manager would refuse this."}},
	{ruleOf[severityWarning], sarifText{"This release does not know this setting, or the setting is misleading."}},
	{ruleOf[severityNote], sarifText{"A hint: the manifest is valid."}},
}

func sarifOf(found []remark, version string) sarif {
	document := sarif{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: make([]sarifRun, 1)}
	run := &document.Runs[0]
	run.Tool.Driver = sarifDriver{Name: "kubectl-storagebench", Version: version, Rules: sarifRules}
	run.Results = []sarifResult{}
	for _, one := range found {
		text := one.Message
		if one.Field != "" {
			text = one.Field + ": " + text
		}
		var at sarifLocation
		at.Physical.Artifact.URI = uriOf(one.File)
		if one.Line > 0 {
			at.Physical.Region = &sarifRegion{one.Line}
		}
		if one.Field != "" {
			at.Logical = []sarifName{{one.Field}}
		}
		run.Results = append(run.Results, sarifResult{ruleOf[one.Severity], one.Severity, sarifText{text}, []sarifLocation{at}})
	}
	return document
}

// uriOf returns a path as a URI, which is relative if the path is relative.
func uriOf(file string) string {
	path := filepath.ToSlash(filepath.Clean(file))
	uri := url.URL{Path: path}
	if filepath.IsAbs(file) {
		uri.Scheme, uri.Path = "file", "/"+strings.TrimPrefix(path, "/")
	}
	return uri.String()
}
