package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

// maxLocalResults is effectively no limit, because results on a disk need none, but the encoder requires one.
const maxLocalResults = 1 << 30

// localOutput is the folder with the results of a local run: results.json, report.md, report.html, junit.xml, pictures/NAME.svg and
// phases/RUN-PHASE.json.
type localOutput struct {
	folder string
	// made is true if the folder did not exist before.
	made bool
}

// newLocalOutput creates the folder. Results of an earlier run are never overwritten.
func newLocalOutput(folder string, checked *validated) (*localOutput, error) {
	if folder == "" {
		folder = naming.ResultsName(checked.benchmark.Name, checked.hash)
	}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, exitf(ExitError, "look into the folder for the results: %w: name another one with --output DIR", err)
	}
	if len(entries) > 0 {
		return nil, exitf(ExitRefused, "--output %s is not empty: use a new folder, so that earlier results stay", folder)
	}
	output := &localOutput{folder, err != nil}
	if err := os.MkdirAll(filepath.Join(folder, "phases"), 0o755); err != nil {
		output.removeEmpty()
		return nil, exitf(ExitError, "make the folder for the results: %w: name one that you may write to with --output DIR", err)
	}
	return output, nil
}

// removeEmpty removes the folders if nothing was written into them, so that the same command works again.
func (o *localOutput) removeEmpty() {
	_ = os.Remove(filepath.Join(o.folder, "phases")) // it fails if there are documents
	if o.made {
		_ = os.Remove(o.folder)
	}
}

// phase writes the complete document of a phase.
func (o *localOutput) phase(name string, document []byte) error {
	return o.write(filepath.Join("phases", name+".json"), document)
}

// finish writes the results of all runs, and returns the path of the report.
func (o *localOutput) finish(experiment results.Experiment, benchmark *v1alpha1.StorageBenchmark,
	documents map[string]results.PhaseDocument) (string, error) {
	text, omitted, err := experiment.Encode(maxLocalResults)
	if err != nil {
		return "", exit(ExitError, err)
	}
	experiment.Omitted = append(experiment.Omitted, omitted...)
	rendered := report.Render(experiment)
	album := pictures.New(experiment)
	for _, wanted := range pictures.WantedOf(experiment) {
		if document, found := documents[naming.PhaseObjectName(wanted.Run, v1alpha1.PhaseName(wanted.Phase))]; found {
			album.Add(pictures.Phase{Run: wanted.Run, Variant: wanted.Variant, Document: document})
		}
	}
	drawn := album.Pictures()
	page, _, err := report.HTML(report.Page{Experiment: experiment, Manifest: repeatable(benchmark, experiment.Seed), Pictures: drawn})
	if err != nil {
		return "", exit(ExitError, err)
	}
	if err := writePictures(o.folder, drawn); err != nil {
		return "", err
	}
	files := []struct {
		name string
		text []byte
	}{{"results.json", text}, {keyMarkdown, []byte(rendered.Markdown + report.MarkdownPictures(folderPictures, drawn))},
		{"junit.xml", rendered.JUnit}, {keyPage, page}}
	for _, file := range files {
		if err := o.write(file.name, file.text); err != nil {
			return "", err
		}
	}
	return filepath.Join(o.folder, keyPage), nil
}

func (o *localOutput) write(name string, text []byte) error {
	return saveFile(o.folder, name, string(text))
}
