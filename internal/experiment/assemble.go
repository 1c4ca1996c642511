package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/runs"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/verdict"
	"github.com/storagebench/storagebench/internal/verdict/gate"
)

// Evidence is the input for the results of an experiment.
type Evidence struct {
	Now        time.Time
	Benchmark  *v1alpha1.StorageBenchmark
	Experiment string
	// Runs are the runs of the experiment. Documents are the stored documents of their phases, by ConfigMap name. A document is missing if
	// it was deleted or edited.
	Runs      []v1alpha1.BenchmarkRun
	Documents map[string]results.PhaseDocument
	// Refused is the number of documents for which there was no memory. More repetitions would only add to them.
	Refused int
	// Gates is nil for a superseded experiment: its gates are no longer known.
	Gates *gate.Set
	Tally Tally
	// Standards are the documents that compare gates use, besides the runs.
	Standards verdict.Standards
	// Slots are the slots of the experiment. Nil for a superseded experiment: its slots are no longer known.
	Slots []design.Slot
}

// Assemble computes the results of an experiment and its verdict.
func Assemble(evidence Evidence) results.Experiment {
	benchmark := evidence.Benchmark
	experiment := results.Experiment{
		Version:    results.PhaseVersion,
		Benchmark:  results.RunIdentity{Namespace: benchmark.Namespace, Name: benchmark.Name, UID: string(benchmark.UID)},
		Experiment: evidence.Experiment,
		Generation: benchmark.Generation,
		Seed:       design.Seed(benchmark), Order: string(benchmark.Spec.Order), Repetitions: repetitionsOf(benchmark, evidence.Runs),
	}
	experiment.StartedAt, experiment.FinishedAt = spanOf(evidence.Runs, evidence.Now)
	runs := slices.Clone(evidence.Runs)
	slices.SortFunc(runs, CompareRuns)
	byRun := make([][]results.PhaseDocument, len(runs))
	spoiled, texts := map[string]bool{}, map[v1alpha1.ConfigMapKey]string{}
	for i := range runs {
		result, used := runResult(&runs[i], evidence.Documents)
		if reason, words := unusable(&runs[i], evidence.Documents, texts); words != "" {
			result.Valid, result.Reason, result.Message = false, reason, words
			if group := naming.GroupName(&runs[i]); !spoiled[group] {
				spoiled[group] = true
				evidence.Tally.giveUp(fmt.Sprintf("%s repetition %d: %s", result.Variant, result.Repetition, words))
			}
		}
		experiment.Runs, byRun[i] = append(experiment.Runs, result), used
		experiment.NodeName, experiment.RunnerImage = JoinNodes(RunNodes(&runs[i])), runs[i].Spec.RunnerImage
		if class := runs[i].Spec.Target.StorageClass; class != nil && experiment.StorageClass == "" {
			experiment.StorageClass = class.Name
		}
	}
	evidence.Tally.giveUp(assembleGroups(&experiment)...)
	wholeSeconds(experiment.Runs)
	experiment.Variants = summarise(experiment.Runs, evidence)
	documents := slices.Concat(byRun...)
	experiment.Environment, experiment.Unlike = results.MergeEnvironment(documents), results.DifferingKeys(documents)
	experiment.Notes = results.MergeNotes(ofValidRuns(experiment.Runs, byRun))
	if evidence.Gates == nil {
		experiment.State, experiment.Reason = results.StateSuperseded, v1alpha1.ReasonSuperseded
		experiment.Message = "the spec changed before the experiment finished; these are the runs that had finished"
		return experiment
	}
	judge(&experiment, evidence)
	if experiment.Extended = evidence.Refused == 0 && extend(&benchmark.Spec, &experiment, evidence.Now); experiment.Extended {
		experiment.Message += fmt.Sprintf("; adding repetitions, up to %d", design.MostRepetitions(&benchmark.Spec))
	}
	for _, words := range []string{lostToStorage(experiment.Runs), unlike(experiment.Runs, byRun)} {
		if words != "" {
			experiment.Message += "; " + words
		}
	}
	if aged := results.AgeOf(experiment.Runs).Words(); aged != "" {
		experiment.Message += "; " + aged
	}
	if late := countStragglers(experiment.Groups); late > 0 {
		experiment.Message += fmt.Sprintf("; in %d phases a node started or finished later than the others: see Stragglers in the report", late)
	}
	return experiment
}

// spanOf returns when the first run was created, and when the last one ended, valid or not. Judging the results again, with other gates or
// another baseline, does not move the end. Without any run that has ended, for example because of a deadline, it is now.
func spanOf(runs []v1alpha1.BenchmarkRun, now time.Time) (started, finished *time.Time) {
	for i := range runs {
		if created := runs[i].CreationTimestamp.Time; started == nil || created.Before(*started) {
			started = utc(created)
		}
		if ended := runs[i].Status.FinishedAt; ended != nil && (finished == nil || ended.After(*finished)) {
			finished = utc(ended.Time)
		}
	}
	return started, cmp.Or(finished, utc(now))
}

// lostToStorage says how many attempts are Invalid because the storage failed. The results cover only the attempts in which it worked.
func lostToStorage(runs []results.RunResult) string {
	lost := map[string]int{}
	for i := range runs {
		if reason := runs[i].Because(results.StorageFailures); reason != "" && !runs[i].Valid {
			lost[reason]++
		}
	}
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(lost)) {
		words = append(words, fmt.Sprintf("%d (%s)", lost[reason], reason))
	}
	if len(words) == 0 {
		return ""
	}
	return "attempts that failed because of the storage, and are not in any result: " + strings.Join(words, ", ")
}

// constant are the parts of the environment that are expected to be the same in all runs of a variant on a node.
var constant = []string{"kernel", "zfs.version", "zfs.parameter.*", "cpu.model", results.KeyWorkloadVersion}

// unlike says what changed between the valid runs of a variant, for example after an upgrade of the node: their median mixes both
// environments.
func unlike(runs []results.RunResult, byRun [][]results.PhaseDocument) string {
	alike := map[[3]string][]results.PhaseDocument{}
	for i := range runs {
		for _, document := range byRun[i] {
			if key := [3]string{runs[i].Variant, runs[i].NodeName, document.Phase}; runs[i].Valid {
				alike[key] = append(alike[key], document)
			}
		}
	}
	changed := map[string]bool{}
	for _, documents := range alike {
		for key, values := range results.Unalike(documents) {
			if results.DifferenceAllowed(key, constant) {
				changed[key+" ("+strings.Join(values, ", ")+")"] = true
			}
		}
	}
	if len(changed) == 0 {
		return ""
	}
	return "runs of the same variant differ in " + spelling.Some(slices.Sorted(maps.Keys(changed)), 4)
}

// ofValidRuns returns the documents of the valid runs, whose numbers are used.
func ofValidRuns(runs []results.RunResult, byRun [][]results.PhaseDocument) (documents []results.PhaseDocument) {
	for i := range runs {
		if runs[i].Valid {
			documents = append(documents, byRun[i]...)
		}
	}
	return documents
}

// summarise lists the variants in the order of the spec, not in the order of execution, because readers compare with the first one.
func summarise(runs []results.RunResult, evidence Evidence) []results.VariantResult {
	variants, names := results.Summarise(runs), design.VariantNames(evidence.Slots)
	slices.SortStableFunc(variants, func(a, b results.VariantResult) int {
		return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
	})
	hashes := design.Definitions(evidence.Slots, evidence.Benchmark.Spec.PodTemplate)
	for i := range variants {
		variants[i].Definition = hashes[variants[i].Name]
		if at := slices.IndexFunc(evidence.Slots, func(slot design.Slot) bool { return slot.Variant == variants[i].Name }); at >= 0 {
			variants[i].Base, variants[i].Matrix = evidence.Slots[at].Base, evidence.Slots[at].Matrix
		}
	}
	return variants
}

// repetitionsOf is the number of expected repetitions: the maximum, once adaptive has added some.
func repetitionsOf(benchmark *v1alpha1.StorageBenchmark, runs []v1alpha1.BenchmarkRun) int32 {
	for _, run := range runs {
		if run.Spec.Repetition > benchmark.Spec.Repetitions {
			return design.MostRepetitions(&benchmark.Spec)
		}
	}
	return benchmark.Spec.Repetitions
}

// CompareRuns sorts runs in the order of execution: by index, attempt, and position in the group.
func CompareRuns(a, b v1alpha1.BenchmarkRun) int {
	return cmp.Or(cmp.Compare(a.Spec.Index, b.Spec.Index), cmp.Compare(a.Spec.Attempt, b.Spec.Attempt), strings.Compare(a.Name, b.Name))
}

// assembleGroups merges the runs of groups. A run whose group is Invalid is not used either. It returns the repetitions that only
// now turned out to be Invalid.
func assembleGroups(experiment *results.Experiment) (givenUp []string) {
	experiment.Groups = results.Join(experiment.Runs)
	for _, group := range experiment.Groups {
		if group.Reason == results.ReasonNotTogether {
			givenUp = append(givenUp, fmt.Sprintf("%s repetition %d: %s", group.Variant, group.Repetition, group.Message))
		}
		for i := range experiment.Runs {
			run := &experiment.Runs[i]
			if run.Group != nil && run.Group.Name == group.Name && run.Valid && !group.Valid {
				run.Valid, run.Reason, run.Message = false, v1alpha1.ReasonPeerInvalid, "the group is Invalid: "+group.Message
			}
		}
	}
	return givenUp
}

// countStragglers counts the phases of valid groups in which a node was out of step.
func countStragglers(groups []results.GroupResult) int {
	late := 0
	for _, group := range groups {
		for _, phase := range group.Phases {
			if group.Valid && len(phase.Stragglers) > 0 {
				late++
			}
		}
	}
	return late
}

// judge sets the gates and the verdict.
func judge(experiment *results.Experiment, evidence Evidence) {
	decision := verdict.Judge(&evidence.Benchmark.Spec, evidence.Gates, evidence.Standards, experiment)
	experiment.State = results.StateComplete
	if len(evidence.Tally.GivenUp) > 0 || evidence.Tally.Expired {
		experiment.State = results.StateIncomplete
		decision.Incomplete(incomplete(evidence))
	}
	experiment.Verdict, experiment.Reason, experiment.Message = string(decision.Verdict), decision.Reason, decision.Message
	experiment.Gates = decision.Gates
}

// incomplete is the verdict on an experiment with missing runs.
func incomplete(evidence Evidence) (verdict v1alpha1.Verdict, reason, message string) {
	tally := evidence.Tally
	if len(tally.GivenUp) > 0 {
		return v1alpha1.VerdictInvalid, "RunsInvalid", fmt.Sprintf("%d of %d runs have usable numbers; given up: %s",
			tally.Done, tally.Total, strings.Join(tally.GivenUp[:min(3, len(tally.GivenUp))], "; "))
	}
	if tally.Held > 0 {
		return v1alpha1.VerdictInconclusive, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf(
			"only %d of %d runs had finished when the benchmark had held its nodes for %s, the limit set by the admin: request fewer runs, or ask "+
				"the admin", tally.Done, tally.Total, tally.Held)
	}
	return v1alpha1.VerdictInconclusive, v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf(
		"only %d of %d runs had finished by spec.deadline (%s): increase it or request fewer runs", tally.Done, tally.Total,
		evidence.Benchmark.Spec.Deadline.Duration.Duration)
}

// unusable says why the results of a run that was Valid when it ended cannot be used. words is empty if they can be used.
func unusable(run *v1alpha1.BenchmarkRun, documents map[string]results.PhaseDocument,
	texts map[v1alpha1.ConfigMapKey]string) (reason, words string) {
	if ending := runs.RecordedEnding(run); ending == nil || !ending.Valid {
		return "", ""
	}
	if lost := lostResult(run, documents); lost != "" {
		return v1alpha1.ReasonResultMissing, lost
	}
	return v1alpha1.ReasonWorkloadChanged, runs.ChangedFile(run, documents, texts)
}

// lostResult names a result of a run that was deleted or edited after it was stored. It returns "" if there is none.
func lostResult(run *v1alpha1.BenchmarkRun, documents map[string]results.PhaseDocument) string {
	for _, phase := range run.Status.Phases {
		if _, found := documents[phase.Result]; phase.Result != "" && !found {
			return fmt.Sprintf("the result of phase %s in ConfigMap %s was deleted or edited after it was stored", phase.Name, phase.Result)
		}
	}
	return ""
}

// runResult is the result of a run, with the documents of its phases. The times of the phases are still exact, see wholeSeconds.
func runResult(run *v1alpha1.BenchmarkRun, documents map[string]results.PhaseDocument) (results.RunResult, []results.PhaseDocument) {
	result := results.RunResult{
		Name: run.Name, UID: string(run.UID), Index: run.Spec.Index, Variant: run.Spec.Variant,
		Repetition: run.Spec.Repetition, Attempt: run.Spec.Attempt, Seed: run.Spec.Seed,
		NodeName: run.Spec.NodeName, PoolAge: PoolAge(run), Reason: "Unfinished", Message: "the run was stopped before its end",
	}
	if group := run.Spec.Group; group != nil {
		result.Group = &results.RunGroup{Name: group.Name, Index: group.Index, Size: int32(len(group.Nodes))}
	}
	if run.Status.StartedAt != nil {
		result.StartedAt = utc(run.Status.StartedAt.Time)
	}
	if run.Status.FinishedAt != nil {
		result.FinishedAt = utc(run.Status.FinishedAt.Time)
	}
	if target := run.Spec.Target.ZFS; naming.KeepsPools(target) {
		result.Reset = string(target.Reset)
	}
	for _, volume := range run.Status.Volumes {
		result.KeptFrom = cmp.Or(result.KeptFrom, volume.KeptFrom)
		result.Volumes = append(result.Volumes, runVolume(volume))
	}
	if ending := runs.RecordedEnding(run); ending != nil {
		result.Valid, result.Reason, result.Message = ending.Valid, ending.Reason, ending.Message
	}
	var used []results.PhaseDocument
	for _, phase := range run.Status.Phases {
		document, found := documents[phase.Result]
		if phase.Result == "" || !found {
			continue
		}
		used = append(used, document)
		result.Phases = append(result.Phases, results.RunPhase{
			Name: document.Phase, Kind: document.Kind, Outcome: document.Outcome, Reason: document.Reason, Message: document.Message,
			ConfigMap: phase.Result, Digest: phase.Digest, StartedAt: &document.StartedAt, FinishedAt: &document.FinishedAt,
			Metrics: document.Metrics, Seeds: document.Seeds,
		})
	}
	result.Preflight = results.Preflight(result, used)
	return result, used
}

// runVolume lists each property once: a property set on the dataset hides an inherited one.
func runVolume(volume v1alpha1.RunVolumeStatus) results.RunVolume {
	properties, own := map[string]string{}, map[string]bool{}
	for _, property := range volume.Properties {
		name := property.Name
		if property.Dataset == "" {
			name = "pool." + name
		}
		ofDataset := strings.Contains(property.Dataset, "/")
		if !own[name] || ofDataset {
			properties[name], own[name] = property.Value, ofDataset
		}
	}
	return results.RunVolume{Name: string(volume.Name), Pool: volume.Pool, Provisioner: volume.Provisioner, ZFSVersion: volume.ZFSVersion,
		Properties: properties}
}

// wholeSeconds truncates the times of phases to whole seconds. The check whether nodes measured at the same time runs before it, because it
// needs the exact times.
func wholeSeconds(runs []results.RunResult) {
	for _, run := range runs {
		for i := range run.Phases {
			phase := &run.Phases[i]
			phase.StartedAt, phase.FinishedAt = utc(*phase.StartedAt), utc(*phase.FinishedAt)
		}
	}
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Second)
	return &t
}
