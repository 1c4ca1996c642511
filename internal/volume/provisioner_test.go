package volume

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// enums finds the enums of all fields with a name in a schema.
func enums(schema any, field string) (found [][]string) {
	switch node := schema.(type) {
	case []any:
		for _, child := range node {
			found = append(found, enums(child, field)...)
		}
	case map[string]any:
		for name, child := range node {
			if property, is := child.(map[string]any); is && name == field && property["enum"] != nil {
				var values []string
				for _, value := range property["enum"].([]any) {
					values = append(values, value.(string))
				}
				found = append(found, values)
			}
			found = append(found, enums(child, field)...)
		}
	}
	return found
}

// TestEveryProvisionerHasARoom: exactly the values that the API allows in dataset.provisioner are registered, wherever the field occurs.
func TestEveryProvisionerHasARoom(t *testing.T) {
	var names []string
	for _, one := range registered {
		names = append(names, one.name)
		volume := RunVolume{Name: "data", Pool: &v1alpha1.PoolTemplate{}, Dataset: &v1alpha1.DatasetTemplate{Provisioner: one.name}}
		if Of(volume) != one.Provisioner {
			t.Errorf("%s is provided by %T", one.name, Of(volume))
		}
	}
	slices.Sort(names)
	for _, kind := range []string{"storagebenchmarks", "benchmarkruns"} {
		text, err := os.ReadFile("../../config/crd/bases/storagebench.dev_" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var crd any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		allowed := enums(crd, "provisioner")
		if len(allowed) == 0 {
			t.Fatalf("%s has no enum for provisioner", kind)
		}
		for _, enum := range allowed {
			slices.Sort(enum)
			if diff := cmp.Diff(enum, names); diff != "" {
				t.Errorf("%s: provisioners of the API (-) and those registered (+):\n%s", kind, diff)
			}
		}
	}
}

// TestDefault: the preferred provisioner needs a driver, and the last one needs none.
func TestDefault(t *testing.T) {
	if last := registered[len(registered)-1]; last.Driver() != nil || last.name != WithoutDriver {
		t.Errorf("%s is the last provisioner, and %s the one without a driver", last.name, WithoutDriver)
	}
	for want, state := range map[string]DriverState{
		ProvisionerOpenEBS: {Installed: true}, ProvisionerLocal: {Lacks: "ZFSVolume"},
	} {
		if got := Default(map[string]DriverState{ProvisionerOpenEBS: state}); got != want {
			t.Errorf("%+v: %s, want %s", state, got, want)
		}
	}
	for name, driver := range Drivers() {
		if driver.Name == "" || driver.PoolOf == nil || driver.NodeID == nil || driver.Install == "" || driver.Title == "" {
			t.Errorf("the driver of %s is not described: %+v", name, driver)
		}
	}
	if len(Drivers()) == 0 {
		t.Error("no provisioner has a driver")
	}
}
