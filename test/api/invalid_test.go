package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// invalid is a manifest that the API server must refuse, blaming a field and saying what to write instead.
type invalid struct{ name, base, patch, field, message string }

// invalidManifests are the manifests that are refused at creation.
var invalidManifests = slices.Concat(invalidTargets, invalidPhases, invalidWorkloads, invalidExperiments, invalidPods, invalidMatrices,
	invalidRuns, invalidPools, invalidDevices, invalidOperations)

func TestInvalidManifestsAreRejected(t *testing.T) {
	for _, entry := range invalidManifests {
		t.Run(entry.base+"/"+entry.name, func(t *testing.T) {
			checkRejection(t, dryCreate(t, patched(t, entry.base, entry.patch)), entry)
		})
	}
	for _, entry := range invalidUpdates {
		t.Run("update/"+entry.base+"/"+entry.name, func(t *testing.T) { checkUpdate(t, entry) })
	}
	for _, entry := range invalidStatuses {
		t.Run("status/"+entry.base+"/"+entry.name, func(t *testing.T) { checkStatus(t, entry) })
	}
	count := len(invalidManifests) + len(invalidUpdates) + len(invalidStatuses)
	if count < 110 {
		t.Errorf("only %d invalid manifests", count)
	}
	if !t.Failed() {
		t.Logf("invalid manifests rejected: %d", count)
		fmt.Println("invalid manifests rejected:", count)
	}
}

// TestBasesAreValid keeps the table honest: without the patch, each manifest is accepted.
func TestBasesAreValid(t *testing.T) {
	for name := range bases {
		if err := dryCreate(t, patched(t, name, "")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBoundsWithUnits: bounds with units are accepted as people write them.
func TestBoundsWithUnits(t *testing.T) {
	for _, bound := range []string{"5000", "100M", "1.5", "1e9", "12ns", "250us", "250 µs", "10ms", "1.5s", "2min", "1h", "1.04%", "3x", "7B",
		"64kB", "1.5GB", "200MiB/s", "1.5GB/s", "500/s", "5k/s", "30.2 k op/s", "2ktx/s"} {
		object := patched(t, "benchmark", `spec.gates[0] = {name: g, bound: {metric: read.x, max: "`+bound+`"}}`)
		if err := dryCreate(t, object); err != nil {
			t.Errorf("%s: %v", bound, err)
		}
	}
}

func checkRejection(t *testing.T, err error, want invalid) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted:\n%s", want.patch)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || (!apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err)) {
		t.Fatalf("not a validation error: %v", err)
	}
	var causes []metav1.StatusCause
	if details := status.ErrStatus.Details; details != nil {
		causes = details.Causes
	}
	if len(causes) == 0 { // strict decoding reports in the message alone
		causes = []metav1.StatusCause{{Field: want.field, Message: err.Error()}}
		if !strings.Contains(err.Error(), want.field) {
			causes[0].Field = ""
		}
	}
	found := false
	for _, cause := range causes {
		if strings.Contains(cause.Message, "should match '") || strings.Contains(cause.Message, "evaluat") {
			t.Errorf("says no more than a regular expression: %s: %s", cause.Field, cause.Message)
		}
		found = found || cause.Field == want.field && strings.Contains(cause.Message, want.message)
	}
	if !found {
		t.Errorf("does not blame %s with %q, but says:", want.field, want.message)
		for _, cause := range causes {
			t.Errorf("  %q: %s", cause.Field, cause.Message)
		}
	}
}

// checkUpdate stores the base and then changes it.
func checkUpdate(t *testing.T, entry invalid) {
	checkRejection(t, update(t, entry.base, entry.patch), entry)
}

// update stores a base and then changes it.
func update(t *testing.T, name, patch string) error {
	t.Helper()
	ctx := context.Background()
	base := patched(t, name, "")
	door := clientFor(t, base)
	stored, err := door.Create(ctx, base, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Delete(ctx, base.GetName(), metav1.DeleteOptions{}) }()
	changed := patched(t, name, patch)
	changed.SetResourceVersion(stored.GetResourceVersion())
	_, err = door.Update(ctx, changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// checkStatus stores the base with a status and then changes that.
func checkStatus(t *testing.T, entry invalid) {
	ctx := context.Background()
	base := patched(t, entry.base, "")
	door := clientFor(t, base)
	stored, err := door.Create(ctx, base, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Delete(ctx, base.GetName(), metav1.DeleteOptions{}) }()
	if entry.base == "operation" {
		stored.Object["status"] = map[string]any{"outcome": "Failed"}
		if stored, err = door.UpdateStatus(ctx, stored, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	changed := patched(t, entry.base, entry.patch)
	changed.SetResourceVersion(stored.GetResourceVersion())
	_, err = door.UpdateStatus(ctx, changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	checkRejection(t, err, entry)
}

// TestVdevsMayChange makes changes of a pool's disks that ZFS can follow, at once or with a PoolOperation.
func TestVdevsMayChange(t *testing.T) {
	for _, change := range []struct{ base, patch string }{
		{"two-vdevs", "spec.vdevs = [{devices: [/dev/disk/by-id/b]}]"},
		{"two-vdevs", "spec.vdevs[0] = {type: mirror, devices: [/dev/disk/by-id/a, /dev/disk/by-id/c]}"},
		{"pool", "spec.vdevs = [{type: mirror, devices: [/dev/disk/by-id/a, /dev/disk/by-id/b, /dev/disk/by-id/d]}]"},
		{"pool", "spec.vdevs = [{devices: [/dev/disk/by-id/b]}]"},
	} {
		if err := update(t, change.base, change.patch); err != nil {
			t.Errorf("%s: %v", change.patch, err)
		}
	}
}

// TestUnknownPathsAreNotThoseOfPools: on a storageClass target, only the paths of a zfs target get the advice to use one.
func TestUnknownPathsAreNotThoseOfPools(t *testing.T) {
	for path, ofPools := range map[string]bool{"read.workers": false, "repetitions": false, "storageClass.nam": false, "dataset.recordsize": true,
		"moduleParameters.zfs_arc_max": true} {
		err := dryCreate(t, patched(t, "benchmark", `spec.matrix = {`+path+`: ["8"]}`))
		if err == nil || strings.Contains(err.Error(), "use them with target.zfs") != ofPools {
			t.Errorf("%s: %v", path, err)
		}
	}
}
