package design

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/spelling"
	"github.com/storagebench/storagebench/internal/workload"
)

// applyVariant applies the overrides of a variant to a slot. at is the place of the variant in the spec.
func applyVariant(slot *Slot, variant v1alpha1.Variant, at int) error {
	if variant.Target != nil {
		slot.Target = *variant.Target.DeepCopy()
	}
	if override := variant.StorageClass; override != nil && slot.Target.StorageClass != nil {
		class := slot.Target.StorageClass
		class.Name = cmp.Or(override.Name, class.Name)
		class.VolumeMode = cmp.Or(override.VolumeMode, class.VolumeMode)
		if override.Size != nil {
			class.Size = *override.Size
		}
	}
	if zfs := slot.Target.ZFS; zfs != nil && variant.Target == nil {
		if err := overrideVolumes(zfs, variant); err != nil {
			return err
		}
		zfs.ModuleParameters = merged(zfs.ModuleParameters, variant.ModuleParameters)
	}
	paths := slices.Sorted(maps.Keys(variant.Set))
	if err := sameField(paths); err != nil {
		return err
	}
	var problems []error
	for _, path := range paths {
		problems = append(problems, atSet(variant, at, path, setPath(slot, path, variant.Set[path])))
	}
	return errors.Join(problems...)
}

func overridePool(pool *v1alpha1.PoolTemplate, override *v1alpha1.PoolOverride) {
	if override == nil {
		return
	}
	if override.Vdevs != nil {
		pool.Vdevs = override.Vdevs
	}
	if override.Log != nil {
		pool.Log = override.Log
	}
	if override.Cache != nil {
		pool.Cache = override.Cache
	}
	if override.Special != nil {
		pool.Special = override.Special
	}
	if override.Ashift != nil {
		pool.Ashift = *override.Ashift
	}
	pool.Properties = merged(pool.Properties, override.Properties)
}

func overrideDataset(at **v1alpha1.DatasetTemplate, override *v1alpha1.DatasetOverride) {
	if override == nil {
		return
	}
	if *at == nil {
		*at = &v1alpha1.DatasetTemplate{}
	}
	dataset := *at
	dataset.Provisioner = cmp.Or(override.Provisioner, dataset.Provisioner)
	dataset.Type = cmp.Or(override.Type, dataset.Type)
	dataset.FSType = cmp.Or(override.FSType, dataset.FSType)
	if override.Size != nil {
		dataset.Size = override.Size
	}
	dataset.Properties = merged(dataset.Properties, override.Properties)
}

func merged[M ~map[string]v1alpha1.PropertyValue](base, more M) M {
	if len(more) == 0 {
		return base
	}
	all := M{}
	maps.Copy(all, base)
	maps.Copy(all, more)
	return all
}

// setPath sets one field of the experiment, by a path of the matrix or of variants[].set.
func setPath(slot *Slot, path string, value v1alpha1.MatrixValue) error {
	head, rest, _ := strings.Cut(path, ".")
	var err error
	switch {
	case head == "storageClass" && slot.Target.StorageClass != nil:
		err = setStorageClass(slot.Target.StorageClass, rest, string(value))
	case head == "volumes" && slot.Target.ZFS != nil:
		err = setVolume(slot.Target.ZFS, rest, string(value))
	case (head == "pool" || head == "dataset") && slot.Target.ZFS != nil:
		err = dataOf(slot.Target.ZFS).set(path, string(value))
	case head == "moduleParameters" && slot.Target.ZFS != nil:
		zfs := slot.Target.ZFS
		zfs.ModuleParameters = merged(zfs.ModuleParameters, v1alpha1.ModuleParameters{rest: v1alpha1.PropertyValue(value)})
	case head == "phases":
		err = setPhase(slot.Phases, rest, string(value))
	case slices.Contains([]string{"pool", "dataset", "volumes", "moduleParameters"}, head):
		err = fmt.Errorf("it changes a zfs target, but variant %q has a storageClass target", slot.Variant)
	case head == "storageClass":
		err = fmt.Errorf("it changes a storageClass target, but variant %q has a zfs target", slot.Variant)
	default:
		err = fmt.Errorf("start the path with storageClass, pool, dataset, volumes, moduleParameters or phases")
	}
	if _, ofValue := errors.AsType[*unfit](err); ofValue {
		return &unfit{Refuse(v1alpha1.ReasonMatrixInvalid, "the path %q cannot be set to %q: %v", path, value, err)}
	}
	if err != nil {
		return Refuse(v1alpha1.ReasonMatrixInvalid, "the path %q cannot be set: %v", path, err)
	}
	return nil
}

// unfit is an error about one value of a path. Any other error applies to all values of the path.
type unfit struct{ error }

func (u *unfit) Unwrap() error { return u.error }

func unfitf(format string, values ...any) error { return &unfit{fmt.Errorf(format, values...)} }

func setStorageClass(class *v1alpha1.StorageClassTarget, field, value string) error {
	switch field {
	case "name":
		class.Name = value
	case "volumeMode":
		class.VolumeMode = corev1.PersistentVolumeMode(value)
	case "size":
		size, err := resource.ParseQuantity(value)
		if err != nil {
			return unfitf("write a size such as 20Gi")
		}
		class.Size = v1alpha1.Size{Quantity: size}
	default:
		return fmt.Errorf("storageClass has name, size and volumeMode, not %q", field)
	}
	return nil
}

func setPool(pool *v1alpha1.PoolTemplate, field, value string) error {
	if name, found := strings.CutPrefix(field, "properties."); found {
		pool.Properties = merged(pool.Properties, v1alpha1.Properties{name: v1alpha1.PropertyValue(value)})
		return nil
	}
	if field != "ashift" {
		return fmt.Errorf("pool has ashift and properties.NAME, not %q", field)
	}
	ashift, err := strconv.ParseInt(value, 10, 32)
	if err != nil || ashift < 9 || ashift > 16 {
		return unfitf("write an ashift between 9 and 16")
	}
	pool.Ashift = int32(ashift)
	return nil
}

// setPhase sets a field of the named phase, for example phases.fill.to, phases.age.steadyState.maxRange or phases.read.workers.
func setPhase(phases []v1alpha1.Phase, rest, value string) error {
	name, field, found := strings.Cut(rest, ".")
	if !found {
		return fmt.Errorf("write phases.PHASE.FIELD, such as phases.fill.to")
	}
	var names []string
	for i := range phases {
		phase := &phases[i]
		if names = append(names, string(phase.Name)); string(phase.Name) != name {
			continue
		}
		switch {
		case phase.Fill != nil:
			return setField(phase.Fill, field, value)
		case phase.Fragment != nil:
			return setField(phase.Fragment, field, value)
		case phase.Free != nil:
			return setField(phase.Free, field, value)
		case phase.Operate != nil:
			return fmt.Errorf("the fields of an operate phase cannot vary: create a separate benchmark for each")
		case phase.Measure != nil && (field == "cache" || strings.HasPrefix(field, "steadyState.")):
			return setField(phase.Measure, field, value)
		case phase.Measure != nil && len(phase.Measure.Workloads) > 0:
			return setWorkload(phase.Measure.Workloads, field, value)
		case phase.Measure != nil:
			return setField(workload.TraitsOf(&phase.Measure.Workload).Spec, field, value, "cache", "steadyState")
		}
	}
	return fmt.Errorf("there is no phase %q in this variant, only %s: write one of these, or leave out the variants that its onlyFor "+
		"leaves out", name, strings.Join(names, ", "))
}

// setWorkload sets a field of one of several workloads, for example phases.busy.log.writers.
func setWorkload(workloads []v1alpha1.NamedWorkload, rest, value string) error {
	name, field, _ := strings.Cut(rest, ".")
	var names []string
	for i := range workloads {
		one := &workloads[i]
		if names = append(names, string(one.Name)); string(one.Name) != name {
			continue
		}
		switch {
		case one.OLTP != nil:
			return setField(one.OLTP, field, value)
		case one.Scan != nil:
			return setField(one.Scan, field, value)
		case one.Redo != nil:
			return setField(one.Redo, field, value)
		}
	}
	return fmt.Errorf("write phases.PHASE.WORKLOAD.FIELD, with one of these workloads: %s", strings.Join(names, ", "))
}

// setField decodes {field: value} into a struct, first as text and then as a number or boolean, and refuses unknown fields. A field such as
// settings.shared_buffers is decoded as {settings: {shared_buffers: value}}, so that the other settings stay. The API server validates the
// value when the run is created. more are the names of fields that the phase has besides those of the struct.
func setField(target any, field, value string, more ...string) error {
	text, _ := json.Marshal(value)
	var failure error
	for _, literal := range [][]byte{text, []byte(value)} {
		if !json.Valid(literal) || string(literal) == "null" { // null would silently change nothing
			continue
		}
		err := decodeAt(target, field, literal)
		if err == nil {
			return nil
		}
		// The path goes below a field with a single value, so the rest of the path is unknown.
		ofType, isType := errors.AsType[*json.UnmarshalTypeError](err)
		if strings.Contains(err.Error(), "unknown field") || isType && ofType.Value == "object" {
			return fmt.Errorf("the phase has no field %q: %s", field, insteadOf(reflect.TypeOf(target), field, more))
		}
		// If the field takes text, the first error says what is wrong with the value.
		if _, takesOther := errors.AsType[*json.UnmarshalTypeError](failure); failure == nil || takesOther {
			failure = err
		}
	}
	return unfitBecause(failure, field, reflect.TypeOf(target))
}

// decodeAt decodes a JSON value into the field at the given path of a struct.
func decodeAt(target any, path string, value []byte) error {
	document := value
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		key, _ := json.Marshal(name)
		document = fmt.Appendf(nil, "{%s:%s}", key, document)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	return decoder.Decode(target)
}

// texts says what to write into fields whose types read text. It says what the rules of these types say.
var texts = map[reflect.Type]string{
	reflect.TypeFor[v1alpha1.Duration]():  "write a duration as whole numbers of at most six digits with units, such as 90s, 5m or 1h30m",
	reflect.TypeFor[v1alpha1.Size]():      "write a size of at least 16Mi, such as 20Gi",
	reflect.TypeFor[v1alpha1.Amount]():    "write an amount of whole bytes greater than zero, such as 10Gi",
	reflect.TypeFor[v1alpha1.BlockSize](): "write a block size that is a power of two between 512 and 16Mi, such as 8Ki or 128Ki",
}

// unfitBecause returns an error that says what kind of value the field of a type needs.
func unfitBecause(failure error, field string, of reflect.Type) error {
	if text := texts[typeAt(of, field)]; text != "" {
		return unfitf("%s", text)
	}
	ofType, isType := errors.AsType[*json.UnmarshalTypeError](failure)
	if !isType {
		return unfitf("the value does not fit the field: %w", failure)
	}
	_, notWhole := strconv.ParseInt(strings.TrimPrefix(ofType.Value, "number "), 10, 64)
	switch ofType.Type.Kind() {
	case reflect.Bool:
		return unfitf("write true or false")
	case reflect.Int32, reflect.Int64:
		if notWhole == nil {
			return unfitf("the number is too large")
		}
		return unfitf("write a whole number")
	case reflect.Struct, reflect.Map:
		return unfitf("it has fields: write a path to one of them, %s.NAME", field)
	default: // lists and future types
		return unfitf("no path can set it")
	}
}

// insteadOf suggests a field of a type, or of the nested type that the path reaches.
func insteadOf(of reflect.Type, field string, more []string) string {
	name, rest, _ := strings.Cut(field, ".")
	fields := fieldsOf(of)
	if below, known := fields[name]; known && rest != "" {
		return insteadOf(below, rest, nil)
	}
	return spelling.Instead(name, slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(fields)), more...))))
}

// typeAt returns the type of the field at a path of a type. It is nil if there is none.
func typeAt(of reflect.Type, path string) reflect.Type {
	name, rest, more := strings.Cut(path, ".")
	field := fieldsOf(of)[name]
	for field != nil && field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	if more && field != nil {
		return typeAt(field, rest)
	}
	return field
}

// fieldsOf returns the types of the fields of a struct, by their JSON names. Other types have none.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return fields
	}
	for _, one := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(one.Tag.Get("json"), ","); name != "" {
			fields[name] = one.Type
		}
	}
	return fields
}
