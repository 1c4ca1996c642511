package runs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// maxPoolAge is far more than any pool reaches.
const maxPoolAge = 1_000_000

// PoolAgeOf returns the age of a pool that experiments pass on, including the run that uses it now, or nil for any other pool. known is
// false if the annotation was tampered with.
func PoolAgeOf(pool *v1alpha1.BenchmarkPool) (age *v1alpha1.PoolAge, known bool) {
	if pool.Labels[v1alpha1.LabelLineage] == "" {
		return nil, true
	}
	age = &v1alpha1.PoolAge{Since: pool.CreationTimestamp, Experiments: 1, Runs: 1}
	text, passedOn := pool.Annotations[v1alpha1.AnnotationPoolAge]
	if !passedOn {
		return age, true
	}
	experiments, runs, _ := strings.Cut(text, "/")
	for _, part := range []struct {
		text string
		into *int32
	}{{experiments, &age.Experiments}, {runs, &age.Runs}} {
		count, err := strconv.ParseInt(part.text, 10, 32)
		if err != nil || count < 1 || count > maxPoolAge {
			return nil, false
		}
		*part.into = int32(count)
	}
	return age, true
}

// nextAge returns the age annotation of a pool after the given run has taken it over. It is empty for a pool that experiments do not pass
// on.
func nextAge(pool *v1alpha1.BenchmarkPool, run *v1alpha1.BenchmarkRun) string {
	age, known := PoolAgeOf(pool)
	if age == nil || !known {
		return ""
	}
	if pool.Labels[v1alpha1.LabelExperiment] != run.Spec.Experiment {
		age.Experiments++
	}
	return fmt.Sprintf("%d/%d", age.Experiments, age.Runs+1)
}

// Taken returns a kept pool as it is after a run has taken it over from the previous run. Both the age and the run are in one write, so
// that a crash cannot separate them.
func Taken(pool *v1alpha1.BenchmarkPool, run *v1alpha1.BenchmarkRun) *v1alpha1.BenchmarkPool {
	taken := pool.DeepCopy()
	if taken.Annotations == nil {
		taken.Annotations = map[string]string{}
	}
	taken.Annotations[v1alpha1.AnnotationKeptFrom] = pool.Labels[v1alpha1.LabelRun]
	taken.Annotations[v1alpha1.AnnotationKeptFromUID] = pool.Labels[v1alpha1.LabelRunUID]
	if age := nextAge(pool, run); age != "" {
		taken.Annotations[v1alpha1.AnnotationPoolAge] = age
	}
	taken.Labels[v1alpha1.LabelRun], taken.Labels[v1alpha1.LabelRunUID] = run.Name, string(run.UID)
	taken.Labels[v1alpha1.LabelExperiment] = run.Spec.Experiment
	return taken
}
