package pools

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/agent/objects"
	"github.com/storagebench/storagebench/internal/naming"
)

// maxStopped is how often the node may stop while a pool is searched for, created or imported. Once or twice may be a coincidence.
const maxStopped = 3

// AttemptPath is the file on the node that names the boots in which the agent created or imported a pool that is not yet in service.
func AttemptPath(pool types.UID) string {
	return filepath.Join("/var/lib/storagebench/attempts", filepath.Base(string(pool)))
}

// ReleasePath is the file on the node that says that an object went while its pool stayed.
func ReleasePath(pool types.UID) string {
	return filepath.Join("/var/lib/storagebench/released", filepath.Base(string(pool)))
}

// StopsNode reports whether the node has stopped with the pool again and again.
func (s State) StopsNode() bool { return s.Stopped >= maxStopped }

// stopsNode refuses a pool with which the node stops.
func (s State) stopsNode() *Decision {
	if !s.StopsNode() {
		return nil
	}
	message := fmt.Sprintf("node %s has stopped %d times while pool %s, or another one beside it, was read in, created or imported, or "+
		"within a minute afterwards: it is left alone. Read the kernel log of these boots on the node (journalctl -k -b -1). To try again, "+
		"remove %s there",
		s.Pool.Spec.NodeName, s.Stopped, naming.PoolName(s.Pool), AttemptPath(s.Pool.UID))
	if !s.Pool.DeletionTimestamp.IsZero() {
		message += "; or " + objects.ReleaseCommand(s.Pool)
	}
	return new(stall(v1alpha1.ReasonPoolStopsNode, "%s", message))
}
