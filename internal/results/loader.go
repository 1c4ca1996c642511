package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Loader reads the documents of the phases of an experiment, without the parts that its results do not need. Phases of one experiment
// mostly have equal environments and the same metric names, which they share to save memory. Callers must not modify its results. It is
// safe for concurrent use.
type Loader struct {
	// Derived are the metrics to compute from distributions, by phase. The distributions themselves are not kept.
	Derived map[string][]string
	// MaxBytes is the memory for all documents together: documents within their bounds can be so many that they fill that of the manager. 0
	// means no limit.
	MaxBytes int64

	kept         atomic.Int64 // in bytes
	mutex        sync.Mutex
	environments map[[sha256.Size]byte]map[string]string
	texts        map[string]string
}

// Load reads the whole document that was stored with a digest, without Raw, Checks and the times of rounds, and with derived metrics
// instead of distributions. It refuses documents with another digest before it decodes them, and those that no runner would send: tenants
// can replace ConfigMaps. If MaxBytes is used up, it returns ErrNoRoom.
func (l *Loader) Load(data map[string]string, binaryData map[string][]byte, digest string) (PhaseDocument, error) {
	if data[KeyDigest] != digest {
		return PhaseDocument{}, fmt.Errorf("%w: the ConfigMap has digest %.80q, stored was %.80q: it was replaced", ErrCorrupt, data[KeyDigest],
			digest)
	}
	if l.MaxBytes > 0 && l.kept.Load() >= l.MaxBytes {
		return PhaseDocument{}, fmt.Errorf("%w: those that were read take %d bytes of memory", ErrNoRoom, l.MaxBytes)
	}
	document, err := storedDocument(data, binaryData)
	if err != nil {
		return PhaseDocument{}, err
	}
	phase, environment, err := l.decode(document)
	if err != nil {
		return PhaseDocument{}, err
	}
	if err := phase.Validate(); err != nil {
		return PhaseDocument{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return l.keep(phase, environment), nil
}

const (
	// documentBytes is what a document takes besides its texts and metrics, with the copies of it that Assemble makes.
	documentBytes = 1536
	// textBytes is what a text takes besides its bytes the first time: it has a place here, in the environment or the metrics of the results,
	// and in the report.
	textBytes = 256
	// metricBytes and factBytes are the sizes of an entry of a map.
	metricBytes, factBytes = 24, 32
)

// keep counts what a valid document takes in memory, and makes it share what other documents have too.
func (l *Loader) keep(phase PhaseDocument, environment [sha256.Size]byte) PhaseDocument {
	phase.Checks, phase.Measured, phase.Operated = nil, nil, nil
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if phase.Metrics != nil {
		metrics := make(map[string]int64, len(phase.Metrics))
		for name, value := range phase.Metrics {
			if metric, own := byName[name]; own {
				metrics[metric.Name] = value
			} else {
				metrics[l.text(name)] = value
			}
		}
		phase.Metrics = metrics
	}
	known, found := l.environments[environment]
	if !found && phase.Environment != nil {
		known = make(map[string]string, len(phase.Environment))
		for key, value := range phase.Environment {
			known[l.text(key)] = l.text(value)
		}
		if l.environments == nil {
			l.environments = map[[sha256.Size]byte]map[string]string{}
		}
		l.environments[environment] = known
		l.kept.Add(mapBytes(len(known), factBytes))
	}
	phase.Environment = known
	l.kept.Add(phase.size())
	return phase
}

// text returns the first of equal texts.
func (l *Loader) text(text string) string {
	if known, found := l.texts[text]; found {
		return known
	}
	if l.texts == nil {
		l.texts = map[string]string{}
	}
	l.texts[text] = text
	l.kept.Add(int64(len(text)) + textBytes)
	return text
}

// size is what a document takes in memory, without what it shares with others.
func (d PhaseDocument) size() int64 {
	size := documentBytes + len(d.Run.Namespace) + len(d.Run.Name) + len(d.Run.UID) + len(d.Phase) + len(d.Reason) + len(d.Message) +
		8*len(d.Seeds)
	for _, words := range slices.Concat(d.Notes, d.Omitted) {
		size += 32 + len(words)
	}
	return int64(size) + mapBytes(len(d.Metrics), metricBytes)
}

// mapBytes is the size of a map. It has room for a power of two of entries, and at most 7 of 8 are used.
func mapBytes(entries, entry int) int64 {
	room := 8
	for room/8*7 < entries {
		room *= 2
	}
	return int64(room * (entry + 1))
}

// leanDocument hides three fields of PhaseDocument behind its own.
type leanDocument struct {
	PhaseDocument
	Environment   json.RawMessage `json:"environment"`
	Distributions json.RawMessage `json:"distributions"`
	Raw           skipped         `json:"raw"`
}

// skipped is a part of a document that is not kept.
type skipped struct{}

// UnmarshalJSON ignores the value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// decode also returns the digest of the environment's text, or another digest that no other environment has.
func (l *Loader) decode(document []byte) (phase PhaseDocument, environment [sha256.Size]byte, err error) {
	var lean leanDocument
	short := cutMember(document, `"raw":`)
	if len(l.Derived) == 0 {
		short = cutMember(short, `"distributions":`)
	}
	if err := LimitValues(short, maxPhaseValues); err != nil {
		return phase, environment, err
	}
	if err := json.Unmarshal(short, &lean); err != nil {
		phase, err = decodePhase(document) // its error says what is wrong, the version first
		return phase, sha256.Sum256(document), err
	}
	if err := lean.validateVersion(); err != nil {
		return phase, environment, err
	}
	phase = lean.PhaseDocument
	dropUnknown(phase.Metrics)
	if phase.Environment, environment, err = l.environment(lean.Environment); err != nil {
		return phase, environment, err
	}
	wanted := l.Derived[phase.Phase]
	if len(wanted) == 0 || len(lean.Distributions) == 0 {
		return phase, environment, nil
	}
	if err := json.Unmarshal(lean.Distributions, &phase.Distributions); err != nil {
		return phase, environment, fmt.Errorf("%w: its distributions are not valid: %w", ErrCorrupt, err)
	}
	return phase.Reduce(wanted), environment, nil
}

// cutMember replaces the value of a member by null, such as that of "raw", which is most of a document. It only scans for strings and
// brackets, which takes a tenth of the time of parsing. It returns a document that it does not understand unchanged.
func cutMember(document []byte, key string) []byte {
	depth, from := 0, -1
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '"':
			if depth == 1 && from < 0 && bytes.HasPrefix(document[i:], []byte(key)) {
				from = i + len(key)
				i = from - 1
				continue
			}
			i = endOfString(document, i)
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 1 && from >= 0 {
				return slices.Concat(document[:from], []byte("null"), document[i:])
			}
			if document[i] != ',' {
				depth--
			}
		}
	}
	return document
}

// endOfString returns the position of the quote that ends the string at i.
func endOfString(document []byte, i int) int {
	for i++; i < len(document) && document[i] != '"'; i++ {
		if document[i] == '\\' {
			i++
		}
	}
	return i
}

// dropUnknown drops names that are not in the vocabulary: they are from an earlier release, and nothing uses them any more.
func dropUnknown(metrics map[string]int64) {
	maps.DeleteFunc(metrics, func(name string, _ int64) bool {
		_, known := LookupMetric(name)
		return !known
	})
}

// environment decodes an environment, unless an earlier document has the same one. It also returns the digest of its text.
func (l *Loader) environment(text json.RawMessage) (facts map[string]string, digest [sha256.Size]byte, err error) {
	digest = sha256.Sum256(text)
	l.mutex.Lock()
	facts, found := l.environments[digest]
	l.mutex.Unlock()
	if found || len(text) == 0 {
		return facts, digest, nil
	}
	if err := json.Unmarshal(text, &facts); err != nil {
		return nil, digest, fmt.Errorf("%w: its environment is not valid: %w", ErrCorrupt, err)
	}
	return facts, digest, nil
}
