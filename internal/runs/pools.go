package runs

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/naming"
	"github.com/storagebench/storagebench/internal/results"
	"github.com/storagebench/storagebench/internal/volume"
	"github.com/storagebench/storagebench/internal/workload"
)

// EarlierPool is a kept pool that still belongs to the previous run.
type EarlierPool struct {
	Name string
	// RunName and RunUID identify the previous run. HandsOn is true if it passes the pool on to this run.
	RunName, RunUID string
	HandsOn         bool
}

// Pools is the observed state of the BenchmarkPools of a run. The zero value is for a run without pools.
type Pools struct {
	// Needed is true if the target uses pools.
	Needed bool
	// Foreign names a pool that belongs to another owner. It is never touched.
	Foreign string
	// Exist is true if all pools exist, Some if at least one does.
	Exist, Some bool
	Deleting    bool
	// Ready is true if all pools match their specs.
	Ready bool
	// Broken is true if a pool will not become ready by itself.
	Broken bool
	// OtherDisks are the names of the volumes whose pools have other disks than in their specs. These pools are ready in all other
	// respects.
	OtherDisks []string
	// Kept is true if the pools outlive the run. Earlier is the first pool that another run has used and that this run should reuse.
	// KeptFrom are the previous runs of the pools, by volume.
	Kept     bool
	Earlier  *EarlierPool
	KeptFrom map[string]results.RunIdentity
	// Volumes are the statuses of the volumes once all pools are ready.
	Volumes []v1alpha1.RunVolumeStatus
	// Datasets are the ZFS names of the datasets that hold the volumes, by volume.
	Datasets map[string]string
	// Disks are the disks of the pools, by volume. A volume is absent if one of its pool's disks is unknown.
	Disks map[string][]workload.Disk
	// Unread are the datasets whose properties must be known and are not known yet. Unasked are the paths of datasets that the agent has
	// not been asked to report yet, by volume.
	Unread  []string
	Unasked map[string]v1alpha1.DatasetPath
	// Differing describes how datasets differ from the request.
	Differing []string
	// Reason and Message describe the first pool that is not ready, has other disks, or is not deleted yet.
	Reason, Message string
}

// PoolsOf combines the states of the pools of a run. pools has one entry for each volume that owns a pool, in their order, and nil for a
// pool that does not exist. persistent has the names of the PersistentVolumes that the run's claims are bound to, by volume.
func PoolsOf(run *v1alpha1.BenchmarkRun, pools []*v1alpha1.BenchmarkPool, persistent map[string]string) Pools {
	state := Pools{Needed: true, Exist: true, Ready: true, Datasets: map[string]string{}, Disks: map[string][]workload.Disk{},
		Kept: naming.KeepsPools(run.Spec.Target.ZFS)}
	for i, wanted := range volume.Pools(volume.RunVolumes(run)) {
		pool := pools[i]
		if pool == nil {
			state.Exist, state.Ready = false, false
			continue
		}
		if pool.Labels[v1alpha1.LabelRunUID] != string(run.UID) && KeptFor(pool, run) {
			state.addEarlier(pool)
			continue
		}
		if pool.Labels[v1alpha1.LabelRunUID] != string(run.UID) {
			state.Exist, state.Ready, state.Foreign = false, false, naming.RunPoolName(run, wanted.Name)
			continue
		}
		state.Some = true
		state.Deleting = state.Deleting || !pool.DeletionTimestamp.IsZero()
		reason, message, ready, broken := poolCondition(pool)
		otherDisks := broken && reason == v1alpha1.ReasonPoolDisksDiffer
		if otherDisks {
			ready, broken, state.OtherDisks = true, false, append(state.OtherDisks, wanted.Name)
		}
		if state.Kept {
			if ready && !handedOn(run, pool) {
				reason, message, ready = v1alpha1.ReasonPoolNotReady,
					"its agent has not made the dataset ready for this run: is it of the same release as the manager?", false
			}
		}
		state.Ready, state.Broken = state.Ready && ready, state.Broken || broken
		state.addVolumes(run, pool, wanted, persistent)
		if (!ready || otherDisks) && state.Reason == "" {
			state.Reason, state.Message = reason, "BenchmarkPool "+pool.Name+": "+message
		}
	}
	if len(state.Unread) > 0 {
		state.Volumes = nil // the values in effect are not known yet
	}
	return state
}

// addVolumes adds the volumes that lie on a pool of the run.
func (p *Pools) addVolumes(run *v1alpha1.BenchmarkRun, pool *v1alpha1.BenchmarkPool, owner volume.RunVolume, persistent map[string]string) {
	disks, all := disksOf(pool), volume.On(volume.RunVolumes(run), owner.Name)
	for _, wanted := range all {
		if p.Kept {
			p.addKept(wanted, pool)
		}
		made := volume.Of(wanted).Made(wanted, pool, persistent[wanted.Name])
		if wanted.MadeIn == "" || made.Dataset != "" {
			p.Volumes = append(p.Volumes, volumeStatus(wanted, pool, made, all))
		}
		p.addMade(wanted, made)
		if len(disks) > 0 {
			p.Disks[wanted.Name] = disks
		}
	}
}

// disksOf returns the disks that hold data, metadata or the intent log of a pool, or nil if the agent has not reported the device number of
// one of them.
func disksOf(pool *v1alpha1.BenchmarkPool) []workload.Disk {
	var devices []v1alpha1.DevicePath
	for _, vdev := range pool.Spec.Vdevs {
		devices = append(devices, vdev.Devices...)
	}
	for _, vdev := range slices.Concat(pool.Spec.Log, pool.Spec.Special) {
		devices = append(devices, vdev.Devices...)
	}
	var disks []workload.Disk
	for _, device := range devices {
		at := slices.IndexFunc(pool.Status.Preflight, func(p v1alpha1.PreflightStatus) bool { return p.Device == device })
		if at < 0 || pool.Status.Preflight[at].Number == "" {
			return nil
		}
		found := pool.Status.Preflight[at]
		disks = append(disks, workload.Disk{Path: string(device), Number: found.Number, Serial: found.Serial})
	}
	return disks
}

// addMade adds the dataset that holds a volume.
func (p *Pools) addMade(wanted volume.RunVolume, made volume.Made) {
	if made.Dataset != "" {
		p.Datasets[wanted.Name] = made.Dataset
	}
	p.Differing = slices.Concat(p.Differing, made.Differing)
	if made.Unread != "" {
		p.Unread = append(p.Unread, made.Unread)
	}
	if made.Report != "" {
		if p.Unasked == nil {
			p.Unasked = map[string]v1alpha1.DatasetPath{}
		}
		p.Unasked[wanted.Name] = made.Report
	}
}

// addEarlier adds a kept pool of an earlier repetition that this run has not taken over yet.
func (p *Pools) addEarlier(pool *v1alpha1.BenchmarkPool) {
	p.Exist, p.Ready = false, false
	if !pool.DeletionTimestamp.IsZero() {
		p.Deleting = true
	}
	if p.Earlier == nil {
		p.Earlier = &EarlierPool{Name: pool.Name, RunName: pool.Labels[v1alpha1.LabelRun], RunUID: pool.Labels[v1alpha1.LabelRunUID]}
	}
}

// addKept records the run from which a kept pool was taken over. A new pool has none.
func (p *Pools) addKept(wanted volume.RunVolume, pool *v1alpha1.BenchmarkPool) {
	name, uid := pool.Annotations[v1alpha1.AnnotationKeptFrom], pool.Annotations[v1alpha1.AnnotationKeptFromUID]
	if name == "" || uid == "" {
		return
	}
	if p.KeptFrom == nil {
		p.KeptFrom = map[string]results.RunIdentity{}
	}
	p.KeptFrom[wanted.Name] = results.RunIdentity{Namespace: pool.Labels[v1alpha1.LabelNamespace], Name: name, UID: uid}
}

// handedOn reports whether the agent has reset a kept pool for a run: a status about an earlier run does not apply.
func handedOn(run *v1alpha1.BenchmarkRun, pool *v1alpha1.BenchmarkPool) bool {
	return !slices.ContainsFunc(naming.RunMarks(pool), func(mark naming.Setting) bool {
		return !slices.ContainsFunc(pool.Status.Properties, func(is v1alpha1.EffectiveProperty) bool {
			return is.Dataset == mark.Dataset && is.Name == mark.Name && is.Value == string(run.UID)
		})
	})
}

// KeptFor reports whether a BenchmarkPool is kept for repetitions such as this run, whichever run uses it now: repetitions of its
// experiment, or of its lineage. Its spec is unchanged as long as its generation is 1.
func KeptFor(pool *v1alpha1.BenchmarkPool, run *v1alpha1.BenchmarkRun) bool {
	within := v1alpha1.LabelExperiment
	if run.Labels[v1alpha1.LabelLineage] != "" || pool.Labels[v1alpha1.LabelLineage] != "" {
		within = v1alpha1.LabelLineage
	}
	for _, label := range []string{v1alpha1.LabelBenchmarkUID, within} {
		if own := run.Labels[label]; own == "" || pool.Labels[label] != own {
			return false
		}
	}
	if _, known := PoolAgeOf(pool); !known {
		return false
	}
	target := run.Spec.Target.ZFS
	return naming.KeepsPools(target) && pool.Labels[v1alpha1.LabelReset] == string(target.Reset) &&
		pool.Labels[v1alpha1.LabelNamespace] == run.Namespace &&
		pool.Spec.NodeName == run.Spec.NodeName && pool.Generation <= 1
}

// poolCondition reads the agent's condition of a pool.
func poolCondition(pool *v1alpha1.BenchmarkPool) (reason, message string, ready, broken bool) {
	condition := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return v1alpha1.ReasonPoolNotReady, waitsForAgent(pool.Spec.NodeName), false, false
	case condition.ObservedGeneration != pool.Generation:
		return v1alpha1.ReasonPoolNotReady, "its agent has not reconciled it yet", false, false
	}
	return condition.Reason, condition.Message, condition.Status == metav1.ConditionTrue, meta.IsStatusConditionTrue(pool.Status.Conditions,
		v1alpha1.ConditionStalled)
}

// waitsForAgent is the message of an object that no agent has looked at yet.
func waitsForAgent(node string) string {
	return fmt.Sprintf("the agent of node %s has not looked at it yet: if this lasts, check that one runs there "+
		"(label storagebench.dev/lab=true)", node)
}

// maxRunProperties is the limit of the API.
const maxRunProperties = 64

// volumeStatus is the status of a pool for a volume of a run, which may be one of several on the pool. It leaves out the properties of the
// datasets of other volumes, and those of the parent of a driver's dataset: they apply only as far as the dataset that holds the volume has
// them too.
func volumeStatus(wanted volume.RunVolume, pool *v1alpha1.BenchmarkPool, made volume.Made,
	all []volume.RunVolume) v1alpha1.RunVolumeStatus {
	others := map[string]bool{}
	for _, one := range all {
		dataset := naming.DatasetName(pool, volume.Of(one).Dataset(one))
		others[dataset] = dataset != made.Dataset
	}
	properties := slices.DeleteFunc(slices.Clone(pool.Status.Properties), func(p v1alpha1.EffectiveProperty) bool {
		return p.Name == naming.PropertyRun || p.Name == naming.PropertyOperation || others[p.Dataset]
	})
	age, _ := PoolAgeOf(pool)
	return v1alpha1.RunVolumeStatus{
		PoolAge: age,
		Name:    v1alpha1.VolumeName(wanted.Name), Pool: pool.Name, Provisioner: wanted.Dataset.Provisioner, GUID: pool.Status.GUID,
		KeptFrom: pool.Annotations[v1alpha1.AnnotationKeptFrom], ZFSVersion: pool.Status.ZFSVersion,
		Properties: properties[:min(len(properties), maxRunProperties)],
	}
}
