package design

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/operate"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// checkTarget returns errors for everything that cannot run, before anything is created. Silently skipping a part would be misleading.
func checkTarget(slot *Slot) error {
	volumes := errors.Join(checkMade(slot), checkVolumes(slot), checkPools(slot))
	problems := errors.Join(volumes, checkWorkloads(slot), checkData(slot))
	if slot.Target.ZFS == nil {
		return errors.Join(problems, checkNoPools(slot))
	}
	destinations := checkDestinations(slot)
	problems = errors.Join(problems, checkReset(slot), destinations)
	if volumes != nil || destinations != nil {
		return problems
	}
	return errors.Join(problems, checkDatasets(slot))
}

// CheckFiles returns errors for job files that were inserted into a slot. Expand does not know their contents and has checked everything
// else.
func CheckFiles(slot *Slot) error { return errors.Join(checkWorkloads(slot), checkData(slot)) }

// checkWorkloads returns errors for anything that a workload cannot do in its phase or on its volume.
func checkWorkloads(slot *Slot) error {
	var problems []error
	block := BlockVolumes(slot.Target)
	for i := range slot.Phases {
		if phase := &slot.Phases[i]; phase.Free != nil && block[phase.Volume] {
			problems = append(problems, slot.refusePhase(i, "phase %s of variant %q: free needs a file system: write volumeMode: Filesystem (or "+
				"dataset.type: Filesystem), or remove the phase", phase.Name, slot.Variant))
		}
		field, problem := workloadProblem(slot, &slot.Phases[i])
		for line := range strings.Lines(problem) {
			at, text := atJobLine(field, strings.TrimSpace(line))
			problems = append(problems, &Mistake{slot.PhaseField(i) + ".measure." + at, &SpecError{v1alpha1.ReasonSpecInvalid,
				fmt.Sprintf("phase %s of variant %q: %s", slot.Phases[i].Name, slot.Variant, text)}})
		}
	}
	return errors.Join(problems...)
}

// jobLine matches the beginning of a message about one line of a fio job file. There is one message for each wrong line.
var jobLine = regexp.MustCompile(`^(?:the fio job file cannot be used: )?line (\d+): `)

// atJobLine adds the line number of such a message to its field. Other messages stay as they are.
func atJobLine(field, problem string) (at, text string) {
	parts := jobLine.FindStringSubmatch(problem)
	if parts == nil {
		return field, problem
	}
	text = strings.TrimPrefix(problem, parts[0])
	return fmt.Sprintf("%s.jobFile[line %s]", field, parts[1]), fmt.Sprintf("line %s of the fio job file: %s", parts[1], text)
}

// workloadProblem describes a problem of a workload, or of one of several that run together, and returns its field. problem is empty if
// there is none.
func workloadProblem(slot *Slot, phase *v1alpha1.Phase) (field, problem string) {
	if phase.Measure == nil {
		return "", ""
	}
	block, own := BlockVolumes(slot.Target), false
	for _, part := range workload.Measured(phase) {
		traits := part.Traits()
		if problem := cmp.Or(traits.Problem(part.Phase.Measure, block[part.Phase.Volume]), traits.Refusal()); problem != "" {
			if part.IsWAL() {
				return part.Field, fmt.Sprintf("its log would be on volume %s, which is a device, and needs a file system: write dataset.type: "+
					"Filesystem, or another volume in walVolume", part.Phase.Volume)
			}
			if part.Name != "" {
				return part.Field, "workload " + part.Name + ": " + problem
			}
			return part.Field, problem
		}
		own = own || VolumeOf(&part.Phase) == VolumeOf(phase)
	}
	if count := slot.NodeCount(); count > 1 && workload.EndsWithOperation(phase) {
		return "until", fmt.Sprintf("until: OperationEnds: operations on %d nodes end at different times, but all nodes must measure at the "+
			"same time: remove until and afterOperation, and write a duration that is long enough, or measure on one node", count)
	}
	parts := workload.PartsOf(phase)
	if wal, apart := workload.WALOf(phase); apart && VolumeOf(&wal.Phase) == VolumeOf(phase) {
		return wal.Field, fmt.Sprintf("its log would be on volume %s, the phase's own volume: write another volume in walVolume, or remove "+
			"it", VolumeOf(phase))
	}
	switch {
	case len(parts) == 0:
		return "", ""
	case phase.Measure.OperateAfter != nil:
		return "operateAfter", "operateAfter: several workloads have no rates before, during and after an operation: remove operateAfter"
	case !own:
		return "workloads", fmt.Sprintf("none of its workloads uses volume %s, the phase's own volume: write volume: %s in the phase",
			VolumeOf(phase), VolumeOf(&parts[0].Phase))
	}
	return "workloads", workload.WhyApart(parts)
}

// VolumeOf is the volume that a phase works on.
func VolumeOf(phase *v1alpha1.Phase) v1alpha1.VolumeName {
	return cmp.Or(phase.Volume, naming.VolumeData)
}

// BlockVolumes says which volumes of a target are block devices, by name. The empty name is the default volume.
func BlockVolumes(target v1alpha1.Target) map[v1alpha1.VolumeName]bool {
	if class := target.StorageClass; class != nil {
		block := class.VolumeMode == corev1.PersistentVolumeBlock
		return map[v1alpha1.VolumeName]bool{"": block, naming.VolumeData: block}
	}
	block := map[v1alpha1.VolumeName]bool{}
	if target.ZFS == nil {
		return block
	}
	for _, one := range volume.TargetVolumes(target) {
		block[v1alpha1.VolumeName(one.Name)] = volume.Mode(one) == corev1.PersistentVolumeBlock
	}
	block[""] = block[naming.VolumeData]
	return block
}

// checkNoPools returns errors for phases that need pools in a variant whose own target or StorageTarget has none, because the API server
// has checked only the target of the spec.
func checkNoPools(slot *Slot) error {
	var problems []error
	for i := range slot.Phases {
		if fill := slot.Phases[i].Fill; fill != nil && fill.Of == "Pool" {
			problems = append(problems, slot.refusePhase(i, "phase %s fills a share of the Pool, but variant %q has a storageClass target: write "+
				"of: Volume", slot.Phases[i].Name, slot.Variant))
		}
		if actions := operate.Of(&slot.Phases[i]); len(actions) > 0 {
			problems = append(problems, slot.refusePhase(i, "phase %s does %s on a pool, but variant %q has a storageClass target: give the "+
				"variant a zfs target, or remove operate from the phase", slot.Phases[i].Name, operate.Name(*actions[0]), slot.Variant))
		}
	}
	return errors.Join(problems...)
}

// checkData checks that an earlier phase has written the data that a phase reads or overwrites, on the same volume.
func checkData(slot *Slot) error {
	var problems []error
	data, there := NewHolding[bool](slot), newPresence(slot)
	for i := range slot.Phases {
		if slot.Phases[i].Fill != nil {
			data.On[VolumeOf(&slot.Phases[i])] = true
		}
		data.After(&slot.Phases[i])
		for _, part := range workload.Measured(&slot.Phases[i]) {
			volume := VolumeOf(&part.Phase)
			traits, _ := workload.PhaseTraits(&part.Phase)
			reads := part.Phase.Fragment != nil || part.Phase.Free != nil || traits.ReadsFill
			if reads && !data.On[volume] && there.absent(volume) == "" { // another check reports missing volumes
				problems = append(problems, slot.refusePhase(i, "phase %s of variant %q works on the data of volume %s, but no earlier phase fills "+
					"it or copies data to it: add one before it, such as {name: fill, fill: {to: 50%%}}", part.Phase.Name, slot.Variant, volume))
			}
		}
		there.after(&slot.Phases[i])
	}
	return errors.Join(problems...)
}

// checkVolumes checks that the volume of every phase exists when the phase begins.
func checkVolumes(slot *Slot) error {
	var problems []error
	there := newPresence(slot)
	for i := range slot.Phases {
		for _, part := range workload.Measured(&slot.Phases[i]) {
			problem := there.absent(VolumeOf(&part.Phase))
			if problem != "" && part.IsWAL() {
				problems = append(problems, &Mistake{slot.PhaseField(i) + ".measure." + part.Field, &SpecError{v1alpha1.ReasonSpecInvalid,
					noVolumeForWAL(slot, &part, there, problem)}})
				continue
			}
			if problem != "" {
				problems = append(problems, slot.refusePhase(i, "phase %s of variant %q %s", part.Phase.Name, slot.Variant, problem))
			}
		}
		there.after(&slot.Phases[i])
	}
	return errors.Join(problems...)
}

// noVolumeForWAL says why the log of a phase cannot be on a volume, and what to write instead.
func noVolumeForWAL(slot *Slot, part *workload.Part, there *presence, problem string) string {
	on := VolumeOf(&part.Phase)
	switch {
	case slot.Target.ZFS == nil:
		problem = "has its log on another volume, and only a zfs target has several: remove walVolume"
	case there.find(on) == nil:
		problem = fmt.Sprintf("has its log on volume %q, which the target does not have: add it to target.zfs.volumes, or write the name of "+
			"another volume in walVolume", on)
	}
	return fmt.Sprintf("phase %s of variant %q %s", part.Phase.Name, slot.Variant, problem)
}

// checkDestinations checks that datasets are sent or copied only to volumes of the same target. Any other name could be the name of another
// user's BenchmarkPool.
func checkDestinations(slot *Slot) error {
	var problems []error
	for i := range slot.Phases {
		phase := &slot.Phases[i]
		for _, action := range operate.Of(phase) {
			if problem := cmp.Or(checkReplicate(slot, action.Replicate, VolumeOf(phase)), checkCopy(slot, action.Copy,
				VolumeOf(phase)), misplaces(slot, phase)); problem != "" {
				problems = append(problems, slot.refusePhase(i, "phase %s of variant %q %s", phase.Name, slot.Variant, problem))
			}
		}
	}
	return errors.Join(problems...)
}

// checkReplicate says why a dataset cannot be sent to its destination.
func checkReplicate(slot *Slot, action *v1alpha1.ReplicateAction, own v1alpha1.VolumeName) string {
	if action == nil {
		return ""
	}
	pools := PoolsOf(slot)
	var others []string
	for _, name := range volumeNames(slot.Target.ZFS) {
		if pools[v1alpha1.VolumeName(name)] != pools[own] {
			others = append(others, name)
		}
	}
	remedy := "write one of these in toVolume: " + strings.Join(others, ", ")
	if len(others) == 0 {
		remedy = "add one with a pool to target.zfs.volumes, and write its name in toVolume"
	}
	switch pool, known := pools[action.ToVolume]; {
	case !known || action.ToVolume == own:
		return fmt.Sprintf("replicates from volume %s to %q, which is not another volume of its target: %s", own, action.ToVolume, remedy)
	case pool == pools[own]:
		return fmt.Sprintf("replicates from volume %s to %s, which lies on the same pool: use clone or copy, or %s", own, action.ToVolume, remedy)
	}
	return ""
}

// checkCopy says why a copy cannot go to its destination.
func checkCopy(slot *Slot, action *v1alpha1.CopyAction, own v1alpha1.VolumeName) string {
	if action == nil {
		return ""
	}
	pools, to := PoolsOf(slot), cmp.Or(action.ToVolume, own)
	switch pool, known := pools[to]; {
	case !known:
		return fmt.Sprintf("copies to volume %q, which is not a volume of its target: write one of these in toVolume: %s", to,
			strings.Join(volumeNames(slot.Target.ZFS), ", "))
	case action.To == action.Dataset && pool == pools[own]:
		return fmt.Sprintf("copies dataset %s to itself: name another dataset in to, or a volume on another pool in toVolume", action.To)
	}
	return ""
}

// CopiesFill reports whether a phase copies the data of a fill, from which volume, and to which volume.
func CopiesFill(slot *Slot, phase *v1alpha1.Phase) (from, to v1alpha1.VolumeName, copies bool) {
	if phase.Operate == nil {
		return "", "", false
	}
	action, pools, own := &phase.Operate.PoolAction, PoolsOf(slot), VolumeOf(phase)
	_, dataset, toVolume := operate.As(action)
	from, to = v1alpha1.VolumeName(dataset), v1alpha1.VolumeName(writesTo(action))
	return from, to, pools[from] != "" && pools[from] == pools[own] && pools[to] != "" && pools[to] == pools[cmp.Or(toVolume, own)]
}

// volumeNames returns the names of the volumes of a target, data first.
func volumeNames(target *v1alpha1.ZFSTarget) []string {
	names := []string{naming.VolumeData}
	for _, volume := range target.Volumes {
		names = append(names, string(volume.Name))
	}
	return names
}

// ResolveTarget is the target of a run on a node, with all defaults filled in.
func ResolveTarget(target v1alpha1.Target, node, defaultClass, defaultProvisioner string) v1alpha1.Target {
	resolved := *target.DeepCopy()
	if resolved.StorageClass != nil && resolved.StorageClass.Name == "" {
		resolved.StorageClass.Name = defaultClass
	}
	zfs := resolved.ZFS
	if zfs == nil {
		return resolved
	}
	for _, own := range zfs.PerNode {
		if own.NodeName == node {
			zfs.Pool = own.Pool
		}
	}
	zfs.PerNode = nil
	zfs.Dataset = resolvedDataset(zfs.Dataset, defaultProvisioner)
	for i := range zfs.Volumes {
		zfs.Volumes[i].Dataset = resolvedDataset(zfs.Volumes[i].Dataset, defaultProvisioner)
	}
	return resolved
}

func resolvedDataset(dataset *v1alpha1.DatasetTemplate, provisioner string) *v1alpha1.DatasetTemplate {
	dataset = volume.DatasetOrDefault(dataset)
	dataset.Provisioner = cmp.Or(dataset.Provisioner, provisioner)
	return dataset
}
