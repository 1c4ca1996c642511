// Command look writes reports to look at, for hack/look: one of a real experiment, and synthetic ones that have everything a report can
// contain, and names that try to break it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/pictures"
	"github.com/storagebench/storagebench/internal/results"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: look RESULTS.JSON FOLDER: writes reports into the folder; real.html is made from these results")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(measured, folder string) error {
	text, err := os.ReadFile(measured)
	if err != nil {
		return err
	}
	var real results.Experiment
	if err := json.Unmarshal(text, &real); err != nil {
		return fmt.Errorf("%s: %w", measured, err)
	}
	page, _, err := report.HTML(report.Page{Experiment: real, Pictures: pictures.New(real).Pictures()})
	if err != nil {
		return err
	}
	pages := map[string][]byte{"real": page}
	for name, made := range synthetic {
		e, phase := made()
		if pages[name], err = render(e, phase); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, page := range pages {
		if err := os.WriteFile(filepath.Join(folder, name+".html"), page, 0o644); err != nil { //nolint:gosec // to be looked at
			return err
		}
	}
	return nil
}

// render makes a page with the documents of all phases that the pictures need. Each picture says that its figures are synthetic.
func render(e results.Experiment, phase func(pictures.Wanted) pictures.Phase) ([]byte, error) {
	album := pictures.New(e)
	for _, wanted := range pictures.WantedOf(e) {
		album.Add(phase(wanted))
	}
	drawn := album.Pictures()
	for i := range drawn {
		drawn[i].Caption = "Synthetic figures. " + drawn[i].Caption
	}
	page, _, err := report.HTML(report.Page{Experiment: e, Pictures: drawn, Manifest: manifest})
	return page, err
}
