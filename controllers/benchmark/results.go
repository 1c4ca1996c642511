package benchmark

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/naming"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/spelling"
)

// The keys of a results ConfigMap.
const (
	keyResults = "results.json"
	keyReport  = "report.md"
	keyJUnit   = "junit.xml"
	// maxResultsBytes leaves room for the report and JUnit below the API's limit of 1 MiB.
	maxResultsBytes = 500 << 10
	// maxResultsMessage bounds the message of results. It can contain texts from the results of phases.
	maxResultsMessage = 4096
)

// writeResults judges an experiment and writes its ConfigMap.
func (r *Reconciler) writeResults(ctx context.Context, observed *observation, decision experiment.Decision,
	action experiment.Action) error {
	benchmark := observed.Benchmark
	evidence := experiment.Evidence{
		Now: r.Clock.Now(), Benchmark: benchmark, Experiment: action.Experiment, Gates: observed.gates, Tally: decision.Tally,
		Standards: observed.Standards, Slots: observed.Slots,
	}
	if action.Superseded {
		evidence.Gates, evidence.Slots = nil, nil
	}
	for i := range observed.Runs {
		if observed.Runs[i].Spec.Experiment == action.Experiment {
			evidence.Runs = append(evidence.Runs, observed.Runs[i])
		}
	}
	loaded, err := r.loadDocuments(ctx, evidence.Runs, evidence.Gates)
	if err != nil {
		return err
	}
	defer loaded.Free()
	evidence.Documents, evidence.Refused = loaded.Phases, loaded.Refused
	scheduled := observed.ScheduledTime
	if len(evidence.Runs) > 0 {
		scheduled = experiment.TimeOf(evidence.Runs[0].Annotations)
	}
	annotations := map[string]string{}
	maps.Copy(annotations, experiment.ScheduledAnnotation(scheduled))
	if !action.Superseded { // the spec of that experiment is gone
		annotations[v1alpha1.AnnotationQuestion] = design.ComparisonHash(benchmark)
	}
	if evidence.Standards.History, err = r.historyBefore(ctx, observed); err != nil {
		return err
	}
	judged := experiment.Assemble(evidence)
	judged.Message = spelling.Shorten(refusedWords(loaded.Refused, action.ConfigMap)+judged.Message, maxResultsMessage)
	wanted, err := resultsOf(benchmark, judged, action, annotations)
	if err != nil {
		return err
	}
	return r.applyResults(ctx, observed, wanted, action)
}

// refusedWords says why results of phases are missing although they are stored.
func refusedWords(count int, stored string) string {
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%s of phases cannot be used, because all results of the experiment together take more memory than the manager has "+
		"for them: use fewer runs, phases or jobs, or ask the admin to increase the memory limit of the manager and then delete ConfigMap "+
		"%s, so that it is written again; ", spelling.Count(count, "result"), stored)
}

// resultsOf returns the ConfigMap with the results of an experiment.
func resultsOf(benchmark *v1alpha1.StorageBenchmark, judged results.Experiment, action experiment.Action,
	annotations map[string]string) (*corev1.ConfigMap, error) {
	text, omitted, err := judged.Encode(maxResultsBytes)
	if err != nil {
		return nil, err
	}
	rendered := report.Render(judged)
	omitted = append(omitted, rendered.Omitted...)
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: action.ConfigMap, Namespace: benchmark.Namespace,
			Labels: map[string]string{
				v1alpha1.LabelBenchmark:    naming.BenchmarkLabel(benchmark.Name),
				v1alpha1.LabelBenchmarkUID: string(benchmark.UID),
				v1alpha1.LabelExperiment:   action.Experiment,
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationFingerprint: action.Fingerprint,
				v1alpha1.AnnotationVerdict:     judged.Verdict,
				annotationExtended:             strconv.FormatBool(judged.Extended),
				annotationOmitted:              strings.Join(omitted, "; "),
			},
			OwnerReferences: []metav1.OwnerReference{experiment.OwnerReference(benchmark)},
		},
		Data: map[string]string{keyResults: string(text), keyReport: rendered.Markdown, keyJUnit: string(rendered.JUnit)},
	}
	maps.Copy(wanted.Annotations, annotations)
	return wanted, nil
}

// applyResults creates the ConfigMap, or replaces the contents of one that is ours. The reconcile then continues with what is stored.
func (r *Reconciler) applyResults(ctx context.Context, observed *observation, wanted *corev1.ConfigMap, action experiment.Action) error {
	err := r.Client.Create(ctx, wanted)
	if apierrors.IsAlreadyExists(err) {
		wanted, err = r.replaceResults(ctx, observed, wanted, action)
	}
	if err != nil || action.Superseded {
		return err
	}
	observed.changed = true
	if wanted == nil {
		observed.Results = append(observed.Results, experiment.StoredExperiment{ConfigMap: action.ConfigMap, Foreign: true})
		return nil
	}
	decoded, err := decodeResults(wanted)
	if err != nil {
		return err
	}
	observed.noteResults(wanted, decoded)
	return nil
}

// replaceResults replaces an existing ConfigMap of the benchmark if it has other results, and returns the stored ConfigMap. It returns nil
// if the ConfigMap belongs to another owner.
func (r *Reconciler) replaceResults(ctx context.Context, observed *observation, wanted *corev1.ConfigMap,
	action experiment.Action) (*corev1.ConfigMap, error) {
	var existing corev1.ConfigMap
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &existing); err != nil {
		return nil, err
	}
	switch mine := naming.IsControlledBy(&existing, observed.Benchmark); {
	case !mine && action.Superseded:
		return nil, fmt.Errorf("ConfigMap %s exists and does not belong to this benchmark: delete or rename it", wanted.Name)
	case !mine:
		return nil, nil
	}
	same := existing.Annotations[v1alpha1.AnnotationFingerprint] == action.Fingerprint &&
		existing.Annotations[annotationExtended] == wanted.Annotations[annotationExtended]
	if same && !action.Superseded {
		if _, err := decodeResults(&existing); err == nil {
			return &existing, nil // an earlier reconcile wrote it, and the cache does not show it yet
		}
	}
	existing.Labels, existing.Annotations, existing.Data = wanted.Labels, wanted.Annotations, wanted.Data
	return &existing, r.Client.Update(ctx, &existing)
}

// annotationExtended is "true" if more repetitions follow.
const annotationExtended = "storagebench.dev/extended"

// annotationOmitted lists the parts that did not fit into the results.
const annotationOmitted = "storagebench.dev/omitted"

func decodeResults(stored *corev1.ConfigMap) (*results.Experiment, error) {
	var experiment results.Experiment
	text := []byte(stored.Data[keyResults])
	err := results.LimitValues(text, results.MaxValues)
	if err == nil {
		err = json.Unmarshal(text, &experiment)
	}
	if err != nil {
		return nil, fmt.Errorf("%s in ConfigMap %s was changed after it was written: %w", keyResults, stored.Name, err)
	}
	if experiment.Version != results.PhaseVersion {
		return nil, fmt.Errorf("%s in ConfigMap %s has version %q", keyResults, stored.Name, experiment.Version)
	}
	return &experiment, nil
}
