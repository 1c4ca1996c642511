// Package qualify has the suite of benchmarks that shows whether storage is fit for databases, and judges its results.
package qualify

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

var (
	//go:embed suite.yaml
	suiteText     string
	suiteTemplate = template.Must(template.New("suite").Parse(suiteText))
)

// The defaults of a suite.
const (
	DefaultSize        = "20Gi"
	DefaultDuration    = time.Minute
	DefaultRepetitions = 3
	// targetPrefix begins the name of a StorageTarget.
	targetPrefix = "target/"
	// localPrefix begins the StorageClass in the results of a local run.
	localPrefix = "local:"
	noLocal     = "a card is about storage in a cluster; for a local run, see report.html beside its results.json"
	// databaseShare divides the size of the volume to give the initial size of the database, which grows and needs room for its log.
	databaseShare = 4
	// leastSize is large enough for a database that pgbench can work on.
	leastSize = 1 << 30
	// maxNameLength leaves room for the endings of the two benchmarks.
	maxNameLength = 50
	// postgresTimes is how many times longer than the other measurements that of PostgreSQL is: it needs a few checkpoints.
	postgresTimes = 5
)

// Suite has the parameters of a suite.
type Suite struct {
	// Of is the name of a StorageClass, or target/NAME for a StorageTarget.
	Of string
	// Size of the volumes. A StorageTarget has its own size, so here it only states that size.
	Size string
	// Duration of each measurement.
	Duration    time.Duration
	Repetitions int
}

// Names returns the names of the StorageBenchmarks of a suite.
func (s Suite) Names() []string {
	return []string{s.name() + "-storage", s.name() + "-postgres"}
}

// name returns qualify-CLASS or qualify-target-NAME, with a digest if that is too long or might not be unique.
func (s Suite) name() string {
	of := strings.TrimPrefix(s.Of, targetPrefix)
	name := "qualify-" + strings.ReplaceAll(of, ".", "-")
	if s.isTarget() {
		name = "qualify-target-" + strings.ReplaceAll(of, ".", "-")
	}
	if len(name) <= maxNameLength && !strings.Contains(of, ".") && !strings.HasPrefix(of, "target-") {
		return name
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(s.Of))
	return strings.TrimRight(name[:min(len(name), maxNameLength-9)], "-") + fmt.Sprintf("-%08x", digest.Sum32())
}

func (s Suite) isTarget() bool { return strings.HasPrefix(s.Of, targetPrefix) }

// Target returns the name of the StorageTarget, or false if a StorageClass is qualified.
func (s Suite) Target() (string, bool) { return strings.CutPrefix(s.Of, targetPrefix) }

// Subject describes the storage that is qualified.
func (s Suite) Subject() string {
	if s.isTarget() {
		return "StorageTarget " + strings.TrimPrefix(s.Of, targetPrefix)
	}
	return fmt.Sprintf("StorageClass %s, volumes of %s", s.Of, s.Size)
}

// SubjectOf returns the subject of stored results, with the size that was measured.
func (s Suite) SubjectOf(experiments ...results.Experiment) string {
	if !s.isTarget() {
		s.Size = "unknown size"
		if measured, known := FactsOf(experiments...).metric("fill", "volumeBytes"); known {
			s.Size = svg.Bytes.Format(float64(measured.Median))
		}
	}
	return s.Subject()
}

// Accepts refuses results that are not from this suite: the card would be about something else.
func (s Suite) Accepts(experiments ...results.Experiment) error {
	seen := map[string]string{}
	for _, e := range experiments {
		switch {
		case len(e.Variants) != 1:
			return fmt.Errorf("%s has %d variants, but the suite of qualify has one: name the results of its StorageBenchmarks", e.Benchmark.Name,
				len(e.Variants))
		case strings.HasPrefix(e.StorageClass, localPrefix):
			return fmt.Errorf("%s was measured by run --local, on %s: %s", e.Benchmark.Name, strings.TrimPrefix(e.StorageClass, localPrefix),
				noLocal)
		case !s.isTarget() && e.StorageClass != s.Of:
			return fmt.Errorf("%s was measured on StorageClass %q, and not on %q: name the StorageClass that it was measured on",
				e.Benchmark.Name, e.StorageClass,
				s.Of)
		case s.isTarget() && !slices.Contains(s.Names(), e.Benchmark.Name):
			return fmt.Errorf("%s does not belong to the suite of %s, which consists of %s: name its target", e.Benchmark.Name, s.Of,
				strings.Join(s.Names(), " and "))
		}
		for _, phase := range e.Variants[0].Phases {
			if other, twice := seen[phase.Name]; twice {
				return fmt.Errorf("phase %s is in %s and in %s: name the results of each part of the suite once", phase.Name, other, e.Benchmark.Name)
			}
			seen[phase.Name] = e.Benchmark.Name
		}
	}
	return nil
}

// Manifests returns the StorageBenchmarks of the suite as YAML.
func (s Suite) Manifests() (string, error) {
	of := strings.TrimPrefix(s.Of, targetPrefix)
	if strings.HasPrefix(of, localPrefix) {
		return "", fmt.Errorf("%q is the name of local storage in results: %s", s.Of, noLocal)
	}
	if problems := validation.IsDNS1123Subdomain(of); len(problems) > 0 {
		return "", fmt.Errorf("%q is no StorageClass, and no target/NAME of a StorageTarget: %s", s.Of, problems[0])
	}
	size, err := resource.ParseQuantity(s.Size)
	if err != nil || size.Value() < leastSize {
		return "", fmt.Errorf("a size of %q: write one of at least 1Gi, such as %s", s.Size, DefaultSize)
	}
	if s.Duration < 10*time.Second || s.Duration > time.Hour || s.Duration%time.Second != 0 {
		return "", fmt.Errorf("a duration of %s: write whole seconds, from 10s to 1h", s.Duration)
	}
	if s.Repetitions < 1 || s.Repetitions > 20 {
		return "", fmt.Errorf("%d repetitions: write 1 to 20", s.Repetitions)
	}
	target := fmt.Sprintf("{storageClass: {name: %q, size: %q}}", of, size.String()) // a name may be null, or 123
	if s.isTarget() {
		target = fmt.Sprintf("{ref: {name: %q}}", of)
	}
	var out strings.Builder
	err = suiteTemplate.Execute(&out, map[string]any{"Name": s.name(), "Target": target, "Repetitions": s.Repetitions,
		"Duration": seconds(s.Duration), "PostgresDuration": seconds(s.Duration * postgresTimes),
		"Database": fmt.Sprintf("%dMi", size.Value()/databaseShare>>20)})
	return out.String(), err
}

func seconds(of time.Duration) string { return fmt.Sprintf("%ds", int(of.Seconds())) }
