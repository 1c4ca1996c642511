package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/host"
)

// parameterFolder is where the node keeps the earlier values of parameters that operations have set.
const parameterFolder = "/var/lib/storagebench/parameters"

// parameterRecord is the earlier value of a parameter.
type parameterRecord struct {
	// Operation is the UID, and Name the name, of the operation that set the parameter.
	Operation types.UID `json:"operation"`
	Name      string    `json:"name"`
	// Parameter is the name of the parameter. Earlier is its value before the operation.
	Parameter string `json:"parameter"`
	Earlier   string `json:"earlier"`
	// Value is the value that the operation has set, as the kernel shows it. Records by older versions of the agent have none.
	Value string `json:"value,omitempty"`
	// Changed is the value that another program has set since. That value stays.
	Changed string `json:"changed,omitempty"`
	// InEffect is, for a parameter that sets a bound of the ARC, the bound that was in effect before the operation.
	InEffect string `json:"inEffect,omitempty"`
	// BootID identifies the boot in which the value was set: after a reboot, the module starts with its own values.
	BootID  string `json:"bootID"`
	Applied bool   `json:"applied"`
	// Restoring says that this agent, or an earlier one, has begun to restore the parameter, so a changed value may be its own.
	Restoring bool `json:"restoring,omitempty"`
	Restored  bool `json:"restored"`
}

func (r *Reconciler) onNode(path string) string { return filepath.Join(r.Root, path) }

func (r *Reconciler) recordPath(operation types.UID) string {
	return r.onNode(filepath.Join(parameterFolder, filepath.Base(string(operation))+".json"))
}

// parameterFile returns the kernel's file of a parameter, or "" if no module of ZFS has the parameter.
func (r *Reconciler) parameterFile(name string) (string, error) {
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("module parameter %q: write a name such as zfs_arc_max: %w", name, operations.ErrPermanent)
	}
	for _, module := range []string{"zfs", "spl"} {
		path := r.onNode(filepath.Join("/sys/module", module, "parameters", name))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for module parameter %s: %w", name, err)
		}
	}
	return "", nil
}

// observeParameter reads the record on the node.
func (r *Reconciler) observeParameter(state *operations.State) error {
	action := state.Operation.Spec.Action.ModuleParameter
	if action == nil {
		return nil
	}
	file, err := r.parameterFile(action.Name)
	if err != nil {
		return err
	}
	state.Parameter = operations.ParameterState{Grants: r.Parameters, Found: file != ""}
	record, err := readRecord(r.recordPath(state.Operation.UID))
	if err != nil || record == nil {
		return err
	}
	boot, err := host.BootID(r.Root)
	if err != nil {
		return err
	}
	known := &operations.ParameterRecord{Applied: record.Applied, Restored: record.Restored, SameBoot: record.BootID == boot,
		Earlier: record.Earlier, Value: record.Value, Changed: record.Changed}
	state.Parameter.Record = known
	if known.SameBoot {
		if known.Changed, err = record.changedIn(file); err != nil {
			return err
		}
	}
	// Until the outcome is written, only the value is a leftover, not the record itself.
	over := state.Operation.Status.Outcome != "" || !state.Operation.DeletionTimestamp.IsZero()
	if over || known.SameBoot && !known.Restored {
		state.Leftovers = []string{fmt.Sprintf("%s was %s before", record.Parameter, record.Earlier)}
	}
	return nil
}

// setParameter records the earlier value, and then sets the new one. It can be repeated at any point. If a deleted operation has set the
// same parameter, that change is restored first: otherwise its value would count as the earlier one, and restoring it later would undo this
// operation.
func (r *Reconciler) setParameter(ctx context.Context, state operations.State, _ operations.Action) error {
	r.parameters.Lock()
	defer r.parameters.Unlock()
	operation, action := state.Operation, state.Operation.Spec.Action.ModuleParameter
	if refusal := r.Parameters.Refusal(r.NodeName, action.Name, string(action.Value)); refusal != "" {
		return fmt.Errorf("%s: %w", refusal, operations.ErrPermanent)
	}
	file, err := r.parameterFile(action.Name)
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("module parameter %s does not exist: %w", action.Name, operations.ErrPermanent)
	}
	record, err := readRecord(r.recordPath(operation.UID))
	if err != nil {
		return err
	}
	if record == nil {
		same := func(record parameterRecord) bool { return record.Parameter == action.Name }
		if err := r.restoreUnowned(ctx, same); err != nil {
			return err
		}
		if record, err = r.remember(operation, file); err != nil {
			return err
		}
	}
	if err := writeParameter(file, string(action.Value)); err != nil {
		return fmt.Errorf("set module parameter %s to %s: %w", action.Name, action.Value, errors.Join(err, operations.ErrPermanent))
	}
	if err := r.takenByARC(file, *record); err != nil {
		return err
	}
	if record.Value, err = readParameter(file); err != nil {
		return err
	}
	record.Applied = true
	return r.writeRecord(*record)
}

// remember records the current value before it is changed.
func (r *Reconciler) remember(operation *v1alpha1.PoolOperation, file string) (*parameterRecord, error) {
	name := operation.Spec.Action.ModuleParameter.Name
	earlier, err := readParameter(file)
	if err != nil {
		return nil, err
	}
	boot, err := host.BootID(r.Root)
	if err != nil {
		return nil, err
	}
	record := parameterRecord{Operation: operation.UID, Name: operation.Name, Parameter: name, Earlier: earlier, BootID: boot}
	if bound, isBound := boundsOfARC[name]; isBound {
		if record.InEffect, err = r.boundInEffect(bound.counter); err != nil {
			return nil, err
		}
	}
	return &record, r.writeRecord(record)
}

// restoreParameter restores the earlier value, unless the node has been rebooted since, and removes the record once the operation
// has ended.
func (r *Reconciler) restoreParameter(_ context.Context, state operations.State) error {
	r.parameters.Lock()
	defer r.parameters.Unlock()
	path := r.recordPath(state.Operation.UID)
	record, err := readRecord(path)
	if err != nil || record == nil {
		return err
	}
	if err := r.restore(record); err != nil {
		return err
	}
	if state.Operation.Status.Outcome == "" && state.Operation.DeletionTimestamp.IsZero() {
		return nil
	}
	return host.RemoveDurably(path)
}

func (r *Reconciler) restore(record *parameterRecord) error {
	boot, err := host.BootID(r.Root)
	if err != nil {
		return err
	}
	if record.Restored || record.BootID != boot {
		return nil
	}
	file, err := r.parameterFile(record.Parameter)
	if err != nil {
		return err
	}
	// Without the module there is nothing to restore.
	if file != "" {
		now, err := readParameter(file)
		if err != nil {
			return err
		}
		if record.Changed, err = record.changedIn(file); err != nil {
			return err
		}
		// If the kernel rejected the new value, there is nothing to restore either. A value that another program has set stays.
		if now != record.Earlier && record.Changed == "" {
			record.Restoring = true
			unrecorded := r.writeRecord(*record)
			// If the disk of the node is full, the other pools get their value back nevertheless.
			if err := errors.Join(unrecorded, r.putBack(file, *record)); err != nil {
				return err
			}
		}
	}
	record.Restored = true
	return r.writeRecord(*record)
}

// restoreOrphans restores, at the start of the agent, the parameters set by operations that no longer exist. The others are restored when
// their operations are reconciled.
func (r *Reconciler) restoreOrphans(ctx context.Context) error {
	r.parameters.Lock()
	defer r.parameters.Unlock()
	return r.restoreUnowned(ctx, nil)
}

// restoreGone restores the parameters set by earlier operations of that name, which no longer exist: a person may have removed their
// finalizers. alive is the UID of the operation that has the name now. If nothing has to be restored, restoreGone does not wait for an
// operation that is writing a parameter, because such a write may hang in the kernel.
func (r *Reconciler) restoreGone(ctx context.Context, name string, alive types.UID) error {
	gone := func(record parameterRecord) bool { return record.Name == name && record.Operation != alive }
	paths, err := r.recordPaths()
	if err != nil || !slices.ContainsFunc(paths, func(path string) bool {
		record, err := readRecord(path)
		return err == nil && record != nil && gone(*record)
	}) {
		return err
	}
	r.parameters.Lock()
	defer r.parameters.Unlock()
	return r.restoreUnowned(ctx, gone)
}

// restoreUnowned restores the selected parameters, or all if which is nil, but only those that were set by operations that no longer exist.
func (r *Reconciler) restoreUnowned(ctx context.Context, which func(parameterRecord) bool) error {
	paths, err := r.recordPaths()
	if err != nil {
		return err
	}
	var problems []error
	for _, path := range paths {
		record, err := readRecord(path)
		if err != nil || record == nil {
			if which == nil { // otherwise the record may not be meant, and was reported when the agent started
				problems = append(problems, err)
			}
			continue
		}
		if which != nil && !which(*record) {
			continue
		}
		if there, err := r.exists(ctx, *record); err != nil || there {
			problems = append(problems, err)
			continue
		}
		if err := r.restore(record); err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, host.RemoveDurably(path))
	}
	return errors.Join(problems...)
}

// recordPaths returns the paths of all records on the node, without drafts that were never finished.
func (r *Reconciler) recordPaths() ([]string, error) {
	folder := r.onNode(parameterFolder)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the records of module parameters: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); filepath.Ext(path) == ".json" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// exists reads from the API server, because a cache does not prove that an operation is gone.
func (r *Reconciler) exists(ctx context.Context, record parameterRecord) (bool, error) {
	var operation v1alpha1.PoolOperation
	err := r.Live.Get(ctx, client.ObjectKey{Name: record.Name}, &operation)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return operation.UID == record.Operation, nil
}

// changedIn returns the value that another program has set since the operation set its own, or "" if none has or if that cannot be
// determined.
func (r parameterRecord) changedIn(file string) (string, error) {
	if file == "" || !r.Applied || r.Restoring || r.Restored || r.Value == "" {
		return r.Changed, nil
	}
	now, err := readParameter(file)
	if err != nil || now == r.Value {
		return "", err
	}
	return now, nil
}

func readParameter(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read a module parameter: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeParameter writes with a single write, as the kernel requires, and never creates a file.
func writeParameter(file, value string) error {
	opened, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = opened.WriteString(value)
	return errors.Join(err, opened.Close())
}

func readRecord(path string) (*parameterRecord, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a module parameter: %w", err)
	}
	var record parameterRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("%s does not name its module parameter: check the file and remove it: %w", path, err)
	}
	return &record, nil
}

func (r *Reconciler) writeRecord(record parameterRecord) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := host.WriteDurably(r.recordPath(record.Operation), text); err != nil {
		return fmt.Errorf("record a module parameter on the node: %w", err)
	}
	return nil
}
