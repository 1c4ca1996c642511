package results

import (
	"regexp"
	"slices"
)

// maxMergedNotes bounds the notes of an experiment. There are a few for each phase.
const maxMergedNotes = 64

// Note is a remark for readers of the metrics of a phase, such as why one is missing, or what did not fit.
type Note struct {
	Phase string `json:"phase"`
	// Text is that of the first result with this note. The figures in it may differ in other results.
	Text string `json:"text"`
	// Results is the number of valid results of the phase with such a note, and Of the number of all its valid results.
	Results int32 `json:"results"`
	Of      int32 `json:"of"`
}

// figures matches numbers and durations, but not those in a name, such as readLatencyP99Nanoseconds or that of job 4k.
var figures = regexp.MustCompile(`\b([0-9]+(\.[0-9]+)?(ns|µs|ms|s|m|h)?)+\b`)

// MergeNotes gathers the notes of all valid results, and what they lack. Notes of a phase that differ only in figures count as one.
func MergeNotes(docs []PhaseDocument) []Note {
	var merged []Note
	type kind struct{ phase, words string }
	places, valid := map[kind]int{}, map[string]int32{}
	for _, doc := range docs {
		if doc.Outcome != OutcomeValid {
			continue
		}
		valid[doc.Phase]++
		seen := map[kind]bool{}
		for _, text := range slices.Concat(doc.Notes, lacks(doc.Omitted)) {
			of := kind{doc.Phase, figures.ReplaceAllString(text, "")}
			place, known := places[of]
			switch {
			case seen[of]:
				continue
			case known:
				merged[place].Results++
			case len(merged) < maxMergedNotes:
				places[of] = len(merged)
				merged = append(merged, Note{Phase: doc.Phase, Text: text, Results: 1})
			}
			seen[of] = true
		}
	}
	for i := range merged {
		merged[i].Of = valid[merged[i].Phase]
	}
	return merged
}

// lacks turns the omitted parts of a document into notes.
func lacks(omitted []string) (notes []string) {
	for _, words := range omitted {
		notes = append(notes, "left out: "+words)
	}
	return notes
}
