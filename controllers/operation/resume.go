package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/agent/operations"
	"github.com/storagebench/storagebench/internal/zfs"
)

// halfReceive is a partial receive in the target of a replication. An empty token means that there is none.
type halfReceive struct {
	token string
	zfs.Resumed
}

// halfReceived finds a partial receive in the target, of any origin.
func (r *Reconciler) halfReceived(ctx context.Context, state operations.State) (halfReceive, error) {
	if state.ToLive == nil {
		return halfReceive{}, nil
	}
	token, err := r.ZFS.ResumeToken(ctx, state.Target.Name)
	if errors.Is(err, zfs.NotFound) || err == nil && token == "" {
		return halfReceive{}, nil
	}
	if err != nil {
		return halfReceive{}, fmt.Errorf("look for a partial receive in %s: %w", state.Target.Name, err)
	}
	resumed, err := r.ZFS.Resumed(ctx, token)
	if err != nil {
		// An error of ZFS about the token is not a refusal of the operation.
		return halfReceive{}, retryable(fmt.Errorf("identify the partial receive in %s: %w", state.Target.Name, err))
	}
	return halfReceive{token: token, Resumed: resumed}, nil
}

// is reports whether it is a partial receive of the snapshot.
func (h halfReceive) is(snapshot operations.Object) bool {
	return h.token != "" && snapshot.Exists && snapshot.GUID == h.GUID
}

// begunBy reports whether the operation started the partial receive, by sending one of its own snapshots. If that snapshot has been
// destroyed since, its name counts instead, but only in a target with the operation's mark.
func (h halfReceive) begunBy(state operations.State, mine []zfs.Dataset) bool {
	if h.token == "" {
		return false
	}
	named := strings.HasPrefix(h.Snapshot, state.Source.Name+"@"+snapshotPrefix(state.Operation))
	return slices.ContainsFunc(mine, func(snapshot zfs.Dataset) bool { return snapshot.GUID == h.GUID }) ||
		named && state.Target.Mark == string(state.Operation.UID)
}
