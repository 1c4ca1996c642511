package benchmark

import (
	"context"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/internal/design"
	"github.com/storagebench/storagebench/internal/volume"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// observeDrivers checks whether the cluster has the drivers of the provisioners, if a target uses pools. The CSIDrivers are watched. The
// drivers' own kinds are only looked up by discovery, because a cluster may not have them.
func (r *Reconciler) observeDrivers(ctx context.Context, observed *observation) error {
	if observed.WithoutAgent = r.WithoutAgent; observed.WithoutAgent {
		return nil
	}
	if !slices.ContainsFunc(observed.Slots, func(slot design.Slot) bool { return slot.Target.ZFS != nil }) {
		return nil
	}
	observed.Drivers = map[string]volume.DriverState{}
	for provisioner, driver := range volume.Drivers() {
		state, err := r.driverState(ctx, driver)
		if err != nil {
			return err
		}
		observed.Drivers[provisioner] = state
	}
	return nil
}

func (r *Reconciler) driverState(ctx context.Context, driver *volume.Driver) (volume.DriverState, error) {
	var found storagev1.CSIDriver
	if err := r.Client.Get(ctx, types.NamespacedName{Name: driver.Name}, &found); err != nil {
		if apierrors.IsNotFound(err) {
			return volume.DriverState{}, nil
		}
		return volume.DriverState{}, fmt.Errorf("look for CSIDriver %s: %w", driver.Name, err)
	}
	for _, kind := range []schema.GroupVersionKind{driver.Volumes, driver.Nodes} {
		_, err := r.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			return volume.DriverState{Lacks: kind.Kind}, nil
		case err != nil:
			return volume.DriverState{}, fmt.Errorf("look for the kind %s of the driver: %w", kind.Kind, err)
		}
	}
	return volume.DriverState{Installed: true}, nil
}
