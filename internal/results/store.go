package results

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/storagebench/storagebench/internal/packing"
)

// Keys of the ConfigMap that holds the result of a phase.
const (
	// KeySummary is the document without the tool's own output and the distributions.
	KeySummary = "summary.json"
	// KeyDocument is the whole document, compressed.
	KeyDocument = "document.json.gz"
	// KeyDigest is the digest of the stored document, uncompressed: that of the received one, unless its raw output did not fit.
	KeyDigest = "digest"
	// KeyOmitted lists the parts of the received document that did not fit. It is absent if all parts did.
	KeyOmitted = "omitted"
	// KeyPool is the series that the node's agent counted on the pool during the phase, compressed. It is set only for a phase on a pool.
	KeyPool = "pool.json.gz"
	// KeyPoolDigest is the digest of that series, uncompressed.
	KeyPoolDigest = "pool-digest"
	// KeyMetaslabs is the free space that a metaslabMap has found, compressed.
	KeyMetaslabs = "metaslabs.json.gz"
	// KeyMetaslabsDigest is the digest of that map, uncompressed.
	KeyMetaslabsDigest = "metaslabs-digest"
)

const (
	maxSummaryBytes = 64<<10 - 1
	// maxStoredBytes leaves room for the summary, the observation of a pool and the metadata in the 1 MiB of an object.
	maxStoredBytes = 640 << 10
)

// StoredPhase returns the contents of the ConfigMap for a received document, and a description of the parts that did not fit. Callers that
// record a digest elsewhere must use the one in the contents, which can differ from the argument.
func StoredPhase(document []byte, digest string) (binaryData map[string][]byte, data map[string]string, omitted string, err error) {
	if got := packing.Digest(document); got != digest {
		return nil, nil, "", fmt.Errorf("%w: it has digest %s and is to be stored as %.80q", ErrCorrupt, got, digest)
	}
	phase, err := decodePhase(document)
	if err != nil {
		return nil, nil, "", err
	}
	var words []string
	gz, err := packing.Pack(document)
	if err != nil {
		return nil, nil, "", err
	}
	if len(gz) > maxStoredBytes {
		words = append(words, fmt.Sprintf("raw output of %d bytes: the compressed document would take %d of %d bytes", len(phase.Raw), len(gz),
			maxStoredBytes))
		if gz, digest, err = packWithoutRaw(phase, words[0]); err != nil {
			return nil, nil, "", err
		}
	}
	summary, dropped, err := summaryOf(phase)
	if err != nil {
		return nil, nil, "", err
	}
	omitted = strings.Join(append(words, dropped...), "; ")
	data = map[string]string{KeySummary: string(summary), KeyDigest: digest}
	if omitted != "" {
		data[KeyOmitted] = omitted
	}
	return map[string][]byte{KeyDocument: gz}, data, omitted, nil
}

func packWithoutRaw(phase PhaseDocument, why string) (gz []byte, digest string, err error) {
	text, err := json.Marshal(phase.withoutRaw(why))
	if err != nil {
		return nil, "", err
	}
	gz, err = packing.Pack(text)
	if err == nil && len(gz) > maxStoredBytes {
		err = fmt.Errorf("%w: even without raw it takes %d bytes compressed, but at most %d are allowed", ErrTooLarge, len(gz), maxStoredBytes)
	}
	return gz, packing.Digest(text), err
}

// summaryOf drops the largest parts until the rest fits. The metrics always stay.
func summaryOf(phase PhaseDocument) (summary []byte, dropped []string, err error) {
	phase.Raw, phase.Distributions = nil, nil
	steps := []struct {
		words string
		drop  func()
	}{
		{"seeds in the summary", func() { phase.Seeds = nil }},
		{"environment in the summary", func() { phase.Environment = nil }},
		{"checks in the summary", func() { phase.Checks = nil }},
		{"notes in the summary", func() { phase.Notes = nil }},
		{"message in the summary", func() { phase.Message, phase.Omitted = "", nil }},
	}
	for {
		if summary, err = json.MarshalIndent(phase, "", "  "); err != nil {
			return nil, nil, err
		}
		if len(summary) <= maxSummaryBytes {
			return summary, dropped, nil
		}
		if len(steps) == 0 {
			return nil, nil, fmt.Errorf("%w: its summary takes %d bytes, but at most %d are allowed: use fewer metrics", ErrTooLarge, len(summary),
				maxSummaryBytes)
		}
		steps[0].drop()
		dropped = append(dropped, steps[0].words)
		steps = steps[1:]
	}
}

// LoadPhase reads the contents that StoredPhase made: the whole document if it is there, otherwise the summary, which has no digest.
func LoadPhase(data map[string]string, binaryData map[string][]byte) (PhaseDocument, error) {
	if _, whole := binaryData[KeyDocument]; !whole && data[KeySummary] != "" {
		return decodePhase([]byte(data[KeySummary]))
	}
	document, err := storedDocument(data, binaryData)
	if err != nil {
		return PhaseDocument{}, err
	}
	return decodePhase(document)
}

// storedDocument unpacks the whole document of a ConfigMap, and checks that it has the digest in the ConfigMap.
func storedDocument(data map[string]string, binaryData map[string][]byte) ([]byte, error) {
	gz, whole := binaryData[KeyDocument]
	if !whole {
		return nil, fmt.Errorf("%w: the ConfigMap has no %s", ErrMissing, KeyDocument)
	}
	document, err := packing.Unpack(gz)
	if err != nil {
		return nil, err
	}
	if got := packing.Digest(document); got != data[KeyDigest] {
		return nil, fmt.Errorf("%w: %s in the ConfigMap has digest %s, stored was %.80q: it was changed", ErrCorrupt, KeyDocument, got,
			data[KeyDigest])
	}
	return document, nil
}
