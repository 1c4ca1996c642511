// Package pictures draws the measurements of an experiment, from its results and from the documents of its phases.
package pictures

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// Limits of the input of pictures. More could not be told apart.
const (
	// Documents are read of at most maxVariants variants, and of maxRuns runs of each.
	maxVariants = svg.SeriesColours
	maxRuns     = 8
	// maxPictures limits the pictures of a room, and maxRows the rows of one picture.
	maxPictures = 12
	maxRows     = 24
)

// Phase is one executed phase.
type Phase struct {
	// Run and Variant that it belongs to.
	Run, Variant string
	// Document of the phase, with its raw part.
	Document results.PhaseDocument
	// Pool has the counters of the node during the phase. Nil if there are none.
	Pool *poolseries.Document
	// Metaslabs has the free space that a metaslabMap has found. Nil if there is no map.
	Metaslabs *poolseries.MetaslabMap
}

// Wanted is a phase whose document pictures are made from.
type Wanted struct{ Run, Variant, Phase, ConfigMap string }

// WantedOf returns the Valid phases of the first valid runs of the first variants of an experiment, in the order of the runs.
func WantedOf(e results.Experiment) []Wanted {
	var variants []string
	runs := map[string]int{}
	var wanted []Wanted
	for _, run := range e.Runs {
		if !run.Valid {
			continue
		}
		if !slices.Contains(variants, run.Variant) {
			variants = append(variants, run.Variant)
		}
		if runs[run.Variant]++; runs[run.Variant] > maxRuns || slices.Index(variants, run.Variant) >= maxVariants {
			continue
		}
		for _, phase := range run.Phases {
			if phase.Outcome == results.OutcomeValid {
				wanted = append(wanted, Wanted{run.Name, run.Variant, phase.Name, phase.ConfigMap})
			}
		}
	}
	return wanted
}

// room draws one kind of picture. It gets one phase after another and keeps little of each.
type room interface {
	add(seen)
	pictures() []report.Picture
}

// rooms by kind, in the order in which their pictures are shown.
var rooms = []struct {
	kind string
	make func(results.Experiment) room
}{
	{"gate", newGates},
	{"heat", newHeat},
	{"sweep", newSweep},
	{"metric", newMetrics},
	{"percentiles", newPercentiles},
	{"series", newSeries},
	{"operations", newOperations},
	{"slowest", newSlowest},
	{"mean", newMean},
	{"rounds", newRounds},
	{"regions", newRegions},
	{"samples", newSamples},
	{"pool", newPool},
	{"requests", newRequests},
	{"metaslabs", newMetaslabs},
}

// seen is a phase with the parts of its raw output that are drawn.
type seen struct {
	Phase
	raw raw
}

// raw has the details of a workload that pictures use.
type raw struct {
	Rounds []struct {
		Bytes               int64 `json:"bytes"`
		DurationNanoseconds int64 `json:"durationNanoseconds"`
	} `json:"rounds"`
	Regions []struct {
		Index       int   `json:"index"`
		Bytes       int64 `json:"bytes"`
		Nanoseconds int64 `json:"nanoseconds"`
	} `json:"regions"`
	Latencies map[string][]struct{ Nanoseconds, Count int64 } `json:"latencies"`
	Samples   []struct{ Milliseconds, Nanoseconds int64 }     `json:"samples"`
	Series    *struct {
		Points []point `json:"points"`
		// Measured are the parts that count.
		Measured []struct {
			ToMilliseconds int64 `json:"toMilliseconds"`
		} `json:"measured"`
		// Steady is the part in which the rate is steady, if it is.
		Steady *struct {
			FromMilliseconds int64 `json:"fromMilliseconds"`
		} `json:"steady"`
	} `json:"series"`
	// SamplesSeen is how many samples there were to choose from. With a window, each sample is the largest of one writer in a time of that
	// length.
	SamplesSeen              int64 `json:"samplesSeen"`
	SampleWindowMilliseconds int64 `json:"sampleWindowMilliseconds"`
	// Workloads are the details of several workloads that ran together, by name.
	Workloads map[string]raw `json:"workloads"`
}

// point has what a workload did in one interval of a series.
type point struct {
	FromMilliseconds       int64 `json:"fromMilliseconds"`
	ToMilliseconds         int64 `json:"toMilliseconds"`
	ReadBytes              int64 `json:"readBytes"`
	WrittenBytes           int64 `json:"writtenBytes"`
	Operations             int64 `json:"operations"`
	LatencyMaxNanoseconds  int64 `json:"latencyMaxNanoseconds"`
	LatencyMeanNanoseconds int64 `json:"latencyMeanNanoseconds"`
}

func (p point) perSecond(count int64) float64 {
	return float64(count) * 1e3 / float64(p.ToMilliseconds-p.FromMilliseconds)
}

// Album collects the data of the pictures of an experiment.
type Album struct{ rooms []room }

// New returns an album. It already has everything that needs only the results.
func New(e results.Experiment) *Album {
	var a Album
	for _, of := range rooms {
		a.rooms = append(a.rooms, of.make(e))
	}
	return &a
}

// mostWorkloads is how many workloads a phase can have. A document may claim more.
const mostWorkloads = 8

// Add adds the document of a phase. It ignores a raw part that it cannot parse: the numbers of the report do not depend on it.
func (a *Album) Add(phase Phase) {
	one := seen{Phase: phase}
	if err := json.Unmarshal(phase.Document.Raw, &one.raw); err != nil {
		one.raw = raw{}
	}
	one.Document.Raw = nil
	all := []seen{one}
	names := slices.Sorted(maps.Keys(one.raw.Workloads)) // each is drawn like a phase
	for _, name := range names[:min(len(names), mostWorkloads)] {
		part := seen{Phase: phase, raw: one.raw.Workloads[name]}
		part.Pool, part.Metaslabs = nil, nil
		part.Document = results.PhaseDocument{Kind: phase.Document.Kind, Phase: phase.Document.Phase + "." + name}
		all = append(all, part)
	}
	for _, of := range a.rooms {
		for _, part := range all {
			of.add(part)
		}
	}
}

// Pictures returns the pictures of everything that was added. Their names are unique, and safe as names of files.
func (a *Album) Pictures() []report.Picture {
	var all []report.Picture
	used := map[string]int{}
	for i, of := range a.rooms {
		drawn := of.pictures()
		for _, picture := range drawn[:min(len(drawn), maxPictures)] {
			name := slug(rooms[i].kind + "-" + picture.Name)
			if used[name]++; used[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, used[name])
			}
			picture.Name = name
			all = append(all, picture)
		}
	}
	return all
}

// slug keeps what is safe in the name of a file and in an id.
func slug(text string) string {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	joined := strings.Join(parts, "-")
	return strings.Trim(joined[:min(len(joined), 80)], "-")
}

// drawing is a chart or a strip.
type drawing interface{ Draw() string }

func picture(section, name, title, caption string, of drawing) report.Picture {
	return report.Picture{Section: section, Name: name, Title: title, Caption: caption, SVG: of.Draw()}
}

// line identifies a series.
type line struct{ phase, variant string }

// lineIDs are lines in the order in which they were seen.
type lineIDs []line

func (l *lineIDs) add(one line) {
	if !slices.Contains(*l, one) {
		*l = append(*l, one)
	}
}

// charts groups lines into pictures: one picture if it has room for all lines, otherwise one for each phase.
func (l lineIDs) charts() [][]line {
	switch {
	case len(l) == 0:
		return nil
	case len(l) <= svg.SeriesColours:
		return [][]line{l}
	}
	var charts [][]line
	at := map[string]int{}
	for _, one := range l {
		i, known := at[one.phase]
		if !known {
			i, charts = len(charts), append(charts, nil)
			at[one.phase] = i
		}
		if len(charts[i]) < svg.SeriesColours {
			charts[i] = append(charts[i], one)
		}
	}
	return charts
}

// label names a line by what distinguishes it from the others.
func label(one line, among []line) string {
	phases, variants := map[string]bool{}, map[string]bool{}
	for _, other := range among {
		phases[other.phase], variants[other.variant] = true, true
	}
	switch {
	case len(variants) == 1:
		return one.phase
	case len(phases) == 1:
		return one.variant
	default:
		return one.phase + ", " + one.variant
	}
}

// about names the phases of lines, for a title.
func about(lines []line) string {
	var phases []string
	for _, one := range lines {
		if !slices.Contains(phases, one.phase) {
			phases = append(phases, one.phase)
		}
	}
	return strings.Join(phases, ", ")
}

// Write formats a value of a metric in its unit.
func Write(metric string, value float64) string {
	text := unitOf(metric).Format(value)
	if known, _ := results.LookupMetric(metric); known.Unit == results.UnitPerSecond {
		text += "/s"
	}
	return text
}

// unitOf returns the unit of a metric on an axis.
func unitOf(metric string) svg.Unit {
	known, _ := results.LookupMetric(metric)
	switch known.Unit {
	case results.UnitBytes:
		return svg.Bytes
	case results.UnitBytesPerSecond:
		return svg.BytesPerSecond
	case results.UnitNanoseconds:
		return svg.Nanoseconds
	case results.UnitPartsPerMillion:
		return svg.PartsPerMillion
	case results.UnitMilli:
		return svg.Milli
	default:
		return svg.Numbers
	}
}
