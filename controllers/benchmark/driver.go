package benchmark

import (
	"context"
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/internal/experiment"
	"github.com/storagebench/storagebench/internal/volume"

	storagev1 "k8s.io/api/storage/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// observeDriver checks whether the cluster has the ZFS LocalPV driver of OpenEBS, if a target uses pools. Its CSIDriver is watched.
// Its own kinds are only discovered, because a cluster may not have them.
func (r *Reconciler) observeDriver(ctx context.Context, observed *observation) error {
	if observed.WithoutAgent = r.WithoutAgent; observed.WithoutAgent {
		return nil
	}
	if !slices.ContainsFunc(observed.Slots, func(slot experiment.Slot) bool { return slot.Target.ZFS != nil }) {
		return nil
	}
	var driver storagev1.CSIDriver
	if err := r.Client.Get(ctx, types.NamespacedName{Name: volume.DriverName}, &driver); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("look for CSIDriver %s: %w", volume.DriverName, err)
	}
	for _, kind := range []string{"ZFSVolume", "ZFSNode"} {
		_, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: volume.DriverGroup, Kind: kind}, volume.DriverVersion)
		switch {
		case meta.IsNoMatchError(err):
			observed.Driver.Missing = fmt.Sprintf("the cluster has CSIDriver %s, but not the kind %s of %s/%s", volume.DriverName, kind,
				volume.DriverGroup, volume.DriverVersion)
			return nil
		case err != nil:
			return fmt.Errorf("look for the kind %s of the driver: %w", kind, err)
		}
	}
	observed.Driver.Installed = true
	return nil
}
