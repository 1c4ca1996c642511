package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Loader reads the documents of many phases without their raw output. Phases of one experiment mostly have equal environments and the same
// metric names, which they share to save memory. Callers must not modify its results. It is safe for concurrent use.
type Loader struct {
	// Derived are the metrics to compute from distributions, by phase. The distributions themselves are not kept.
	Derived map[string][]string

	mutex        sync.Mutex
	environments map[string]map[string]string
}

// Load reads the whole document that was stored with a digest, without Raw and with derived metrics instead of distributions. It refuses
// documents with another digest before it decodes them, and those that no runner would send: tenants can replace ConfigMaps.
func (l *Loader) Load(data map[string]string, binaryData map[string][]byte, digest string) (PhaseDocument, error) {
	if data[KeyDigest] != digest {
		return PhaseDocument{}, fmt.Errorf("%w: the ConfigMap has digest %.80q, stored was %.80q: it was replaced", ErrCorrupt, data[KeyDigest],
			digest)
	}
	document, err := storedDocument(data, binaryData)
	if err != nil {
		return PhaseDocument{}, err
	}
	phase, err := l.decode(document)
	if err != nil {
		return PhaseDocument{}, err
	}
	if err := phase.Validate(); err != nil {
		return PhaseDocument{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return phase, nil
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

func (l *Loader) decode(document []byte) (PhaseDocument, error) {
	var lean leanDocument
	short := cutMember(document, `"raw":`)
	if len(l.Derived) == 0 {
		short = cutMember(short, `"distributions":`)
	}
	if err := LimitValues(short, maxPhaseValues); err != nil {
		return PhaseDocument{}, err
	}
	if err := json.Unmarshal(short, &lean); err != nil {
		return decodePhase(document) // its error says what is wrong, the version first
	}
	if err := lean.validateVersion(); err != nil {
		return PhaseDocument{}, err
	}
	phase := lean.PhaseDocument
	phase.Metrics = shareNames(phase.Metrics)
	var err error
	if phase.Environment, err = l.environment(lean.Environment); err != nil {
		return phase, err
	}
	wanted := l.Derived[phase.Phase]
	if len(wanted) == 0 || len(lean.Distributions) == 0 {
		return phase, nil
	}
	if err := json.Unmarshal(lean.Distributions, &phase.Distributions); err != nil {
		return phase, fmt.Errorf("%w: its distributions are not valid: %w", ErrCorrupt, err)
	}
	return phase.Reduce(wanted), nil
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

// shareNames replaces the names by those of the vocabulary, so that each exists only once in memory. It drops other names: they are from an
// earlier release, and nothing uses them any more.
func shareNames(metrics map[string]int64) map[string]int64 {
	if metrics == nil {
		return nil
	}
	shared := make(map[string]int64, len(metrics))
	for name, value := range metrics {
		if metric, known := LookupMetric(name); known {
			shared[metric.Name] = value
		}
	}
	return shared
}

const (
	// maxShared is the largest number of environments that are remembered: if all are different, there is nothing to share.
	maxShared = 256
	// maxSharedBytes is the largest text of an environment that is remembered. Most have a tenth of that.
	maxSharedBytes = 32 << 10
)

// environment decodes each distinct environment once.
func (l *Loader) environment(text json.RawMessage) (map[string]string, error) {
	if len(text) == 0 {
		return nil, nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known, found := l.environments[string(text)]; found {
		return known, nil
	}
	var decoded map[string]string
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("%w: its environment is not valid: %w", ErrCorrupt, err)
	}
	if l.environments == nil {
		l.environments = map[string]map[string]string{}
	}
	if len(l.environments) < maxShared && len(text) <= maxSharedBytes {
		l.environments[string(text)] = decoded
	}
	return decoded, nil
}
