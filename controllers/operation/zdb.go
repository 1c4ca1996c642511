package operation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/poolseries"
)

// layoutScore scores the layout of the blocks of a volume, of the largest file of a mounted file system, or of all files of an unmounted
// one.
func (r *Reconciler) layoutScore(ctx context.Context, state operations.State, _ *job) (operations.Result, error) {
	name := state.Source.Name
	object, what, err := r.largest(ctx, state)
	if err != nil {
		return operations.Result{}, err
	}
	// Sync first, because zdb reads the disks directly, bypassing the module.
	if err := r.proven(ctx, state, func() error { return r.ZFS.Sync(ctx, state.Live.Name) }); err != nil {
		return operations.Result{}, err
	}
	score, err := r.ZFS.LayoutScore(ctx, name, object)
	if err != nil {
		return operations.Result{}, err
	}
	follow, known := score.PartsPerMillion()
	if !known {
		return operations.Result{}, fmt.Errorf("none of the %d blocks of %s on disk follows another one: there is nothing to score, "+
			"write more: %w", score.Blocks, what, operations.ErrPermanent)
	}
	return operations.Result{
		Message: fmt.Sprintf("%.2f%% of the blocks of %s begin at most 1 MiB behind the preceding block", float64(follow)/1e4, what),
		Metrics: []v1alpha1.OperationMetric{{Name: "layoutScorePartsPerMillion", Value: follow}, {Name: "blocks", Value: score.Blocks},
			{Name: "neighbours", Value: score.Neighbours}, {Name: "segments", Value: score.Blocks - score.Neighbours}},
	}, nil
}

// largest returns the object of the dataset to score, and a description. Object 0 means all objects.
func (r *Reconciler) largest(ctx context.Context, state operations.State) (object uint64, what string, err error) {
	name := state.Source.Name
	if state.Source.Type == "volume" {
		return 1, "volume " + name, nil
	}
	found, err := r.mountOf(name)
	if err != nil {
		return 0, "", err
	}
	if found.Point == "" {
		return 0, "all files of " + name + ", which is not mounted,", nil
	}
	root, err := r.open(name, true)
	if err != nil {
		return 0, "", err
	}
	largest, path := int64(-1), ""
	err = eachFile(ctx, root, func(at string, info fs.FileInfo) error {
		if status, isUnix := unixStat(info); isUnix && info.Mode().IsRegular() && info.Size() > largest {
			largest, path, object = info.Size(), at, status.Ino
		}
		return nil
	})
	if err = errors.Join(err, root.Close()); err != nil {
		return 0, "", fmt.Errorf("look for the largest file of %s: %w", name, err)
	}
	if path == "" {
		return 0, "", fmt.Errorf("dataset %s has no files: %w", name, operations.ErrPermanent)
	}
	return object, fmt.Sprintf("%s of %s", shown(path), name), nil
}

// metaslabMap reads the map of the free space.
func (r *Reconciler) metaslabMap(ctx context.Context, state operations.State, _ *job) (operations.Result, error) {
	if err := r.proven(ctx, state, func() error { return r.ZFS.Sync(ctx, state.Live.Name) }); err != nil {
		return operations.Result{}, err
	}
	metaslabs, err := r.ZFS.Metaslabs(ctx, state.Live.Name)
	if err != nil {
		return operations.Result{}, err
	}
	version, err := r.ZFS.Version(ctx)
	if err != nil {
		return operations.Result{}, err
	}
	document := poolseries.NewMetaslabMap(state.Live.Name, state.Live.GUID, version.Full(), r.Clock.Now(), metaslabs)
	data, digest, err := document.Pack()
	if err != nil {
		return operations.Result{}, errors.Join(err, operations.ErrPermanent)
	}
	segments, power := document.Segments()
	metrics := []v1alpha1.OperationMetric{{Name: "metaslabs", Value: int64(len(metaslabs))}, {Name: "freeBytes", Value: document.FreeBytes},
		{Name: "freeSegments", Value: segments}}
	if power >= 0 {
		metrics = append(metrics, v1alpha1.OperationMetric{Name: "largestFreeSegmentBytes", Value: 1 << power})
	}
	return operations.Result{Message: fmt.Sprintf("pool %s has %d bytes free in %d segments", state.Live.Name, document.FreeBytes, segments),
		Metrics: metrics, Data: data, DataDigest: digest}, nil
}
