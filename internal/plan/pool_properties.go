package plan

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/zfs"
)

// Setting is a property to be set.
type Setting struct {
	// Dataset that gets it; empty for the pool itself.
	Dataset string
	Name    string
	Value   string
}

// DatasetName is the full name of a dataset of the spec.
func DatasetName(pool *v1alpha1.BenchmarkPool, dataset v1alpha1.PoolDataset) string {
	return PoolName(pool) + "/" + string(dataset.Path)
}

// ReportedDataset is the full name of a dataset that somebody else made, whose properties are to be reported too; empty if there is none.
func ReportedDataset(pool *v1alpha1.BenchmarkPool) string {
	if path := pool.Annotations[v1alpha1.AnnotationReport]; path != "" {
		return PoolName(pool) + "/" + path
	}
	return ""
}

// WantedSettings are all properties that the spec asks for, in a stable order.
func WantedSettings(pool *v1alpha1.BenchmarkPool) []Setting {
	var wanted []Setting
	add := func(dataset string, properties v1alpha1.Properties) {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			wanted = append(wanted, Setting{Dataset: dataset, Name: name, Value: string(properties[name])})
		}
	}
	add("", pool.Spec.Properties)
	add(PoolName(pool), pool.Spec.RootProperties)
	for _, dataset := range pool.Spec.Datasets {
		add(DatasetName(pool, dataset), dataset.Properties)
	}
	return wanted
}

// poolDatasets makes the first dataset that is missing, parents before children.
func poolDatasets(state PoolState) *PoolDecision {
	datasets := slices.Clone(state.Pool.Spec.Datasets)
	slices.SortFunc(datasets, func(a, b v1alpha1.PoolDataset) int { return strings.Compare(string(a.Path), string(b.Path)) })
	for _, dataset := range datasets {
		name := DatasetName(state.Pool, dataset)
		at := slices.IndexFunc(state.Live.Datasets, func(d zfs.Dataset) bool { return d.Name == name })
		if at >= 0 {
			if is, asked := state.Live.Datasets[at].Type, strings.ToLower(dataset.Type); asked != "" && is != asked {
				decision := poolStall(v1alpha1.ReasonPoolDrifted, "dataset %s is a %s, not a %s: destroy it, or give the new one another path", name, is, asked)
				return &decision
			}
			if decision := otherSize(state, dataset, name); decision != nil {
				return decision
			}
			if decision := mountDataset(state, dataset, state.Live.Datasets[at]); decision != nil {
				return decision
			}
			continue
		}
		spec := zfs.DatasetSpec{Name: name, Properties: plain(dataset.Properties)}
		maps.Copy(spec.Properties, datasetMarks(state.Pool))
		if dataset.Mounted {
			maps.Copy(spec.Properties, zfs.Unmounted())
		}
		if dataset.Size != nil {
			spec.VolumeBytes = dataset.Size.Value()
		}
		decision := poolAct("making dataset "+name, PoolAction{Kind: CreateDataset, GUID: state.Live.GUID, Dataset: spec})
		return &decision
	}
	return nil
}

// largestBlock is what ZFS may round the size of a volume up to.
const largestBlock = 16 << 20

// otherSize reports a volume of another size. It is not changed: to shrink one is to lose what is at its end.
func otherSize(state PoolState, dataset v1alpha1.PoolDataset, name string) *PoolDecision {
	if dataset.Size == nil {
		return nil
	}
	is, _ := state.Live.Property(name, "volsize")
	asked := dataset.Size.Value()
	if size, err := strconv.ParseInt(is.Value, 10, 64); err == nil && size >= asked && size < asked+largestBlock {
		return nil
	}
	decision := poolStall(v1alpha1.ReasonPoolDrifted, "volume %s has %s bytes, asked for are %d: a volume keeps its size; give the new one another path", name, is.Value, asked)
	return &decision
}

// poolProperties sets what a new generation asks for. What differs from a generation that was set already was changed by
// somebody else: that is drift, repaired or reported as the spec says.
func poolProperties(state PoolState) *PoolDecision {
	var differing []Setting
	var words []string
	for _, wanted := range WantedSettings(state.Pool) {
		is, found := state.Live.Property(wanted.Dataset, wanted.Name)
		if found && sameValue(wanted.Value, is.Value) {
			continue
		}
		differing = append(differing, wanted)
		words = append(words, difference(state.Live.Name, wanted, is, found))
	}
	generation := strconv.FormatInt(state.Pool.Generation, 10)
	mark, _ := state.Live.Property(state.Live.Name, PropertyGeneration)
	isSet := mark.Local() && mark.Value == generation
	if isSet && len(differing) == 0 {
		return nil
	}
	if isSet && state.Pool.Spec.Drift != "Repair" {
		decision := poolStall(v1alpha1.ReasonPoolDrifted, "somebody changed pool %s: %s. Set it back, change the spec, or write drift: Repair", state.Live.Name, strings.Join(words, "; "))
		return &decision
	}
	// The mark comes last: it says that all before it is set.
	settings := append(differing, Setting{Dataset: state.Live.Name, Name: PropertyGeneration, Value: generation})
	message := "setting the properties of pool " + state.Live.Name
	if len(words) > 0 {
		message += ": " + strings.Join(words, "; ")
	}
	decision := poolAct(message, PoolAction{Kind: SetPoolProperties, GUID: state.Live.GUID, Settings: settings})
	if isSet {
		// Somebody may change it back each time, or ZFS may write the value in other words.
		decision.Recheck = poolSoon
	}
	return &decision
}

func difference(pool string, wanted Setting, is zfs.Property, found bool) string {
	object := wanted.Dataset
	if object == "" {
		object = "pool " + pool
	}
	if !found {
		return fmt.Sprintf("%s of %s is not there, asked for is %s (write names as 'zfs get' prints them)", wanted.Name, object, wanted.Value)
	}
	return fmt.Sprintf("%s of %s is %s (%s), asked for is %s", wanted.Name, object, is.Value, is.Source, wanted.Value)
}

var sizePattern = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)([kmgtpe]?)(?:i?b)?$`)

// sameValue compares a wish with what ZFS prints in exact numbers: 8k is 8192, and no limit is 0 or none.
func sameValue(wanted, is string) bool {
	if wanted == is {
		return true
	}
	a, isSize := bytesOf(wanted)
	b, alsoSize := bytesOf(is)
	return isSize && alsoSize && a.Cmp(b) == 0
}

func bytesOf(text string) (*big.Rat, bool) {
	if text == "none" {
		return new(big.Rat), true
	}
	parts := sizePattern.FindStringSubmatch(strings.ToLower(text))
	if parts == nil {
		return nil, false
	}
	value, valid := new(big.Rat).SetString(parts[1])
	if !valid {
		return nil, false
	}
	power := 0
	if parts[2] != "" {
		power = strings.Index("kmgtpe", parts[2]) + 1
	}
	return value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(10*power)))), true
}
