package runs

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storagebench/storagebench/internal/naming"
)

// Claims is the observed state of the claims of a run, and of the objects that were created for them.
type Claims struct {
	// Foreign is true if a claim of another owner has one of the names. It is never touched.
	Foreign bool
	// Exists is true if all claims exist, Some if a claim or an object that was created for one still exists.
	Exists   bool
	Some     bool
	Deleting bool
	Bound    bool
	Lost     bool
	// Problem is the cluster's reason for not binding a claim.
	Problem string
	// BindFirst is true if the claims must be bound and checked before a pod is created.
	BindFirst bool
	// Unwatched names leftovers of a driver for a volume whose claim is gone.
	Unwatched string
}

// Left reports whether anything of the volumes still exists.
func (c Claims) Left() bool { return c.Exists || c.Some }

// ClaimOf reads the claim of the run with the given UID for the planner. A nil claim does not exist.
func ClaimOf(claim *corev1.PersistentVolumeClaim, runUID, problem string) Claims {
	if claim == nil {
		return Claims{}
	}
	if owner := metav1.GetControllerOf(claim); owner == nil || string(owner.UID) != runUID || !naming.IsOurs(*owner) {
		return Claims{Foreign: true}
	}
	return Claims{
		Exists:   true,
		Deleting: !claim.DeletionTimestamp.IsZero(),
		Bound:    claim.Status.Phase == corev1.ClaimBound,
		Lost:     claim.Status.Phase == corev1.ClaimLost,
		Problem:  problem,
	}
}

// WithLeftovers is the state of a claim that does not exist, including leftover objects that were created for it. If a claim of another
// owner has its name, objects that are being deleted are not waited for: a PersistentVolume that is bound to the other claim stays as long
// as that claim.
func (c Claims) WithLeftovers(behind Claims) Claims {
	if behind.Foreign = c.Foreign; c.Foreign && behind.Unwatched == "" {
		behind.Some, behind.Deleting = behind.Some && !behind.Deleting, false
	}
	return behind
}

// JoinClaims combines the claims of a run: they exist if all of them exist, and something is left if something of any of them is.
func JoinClaims(states []Claims) Claims {
	joined := Claims{Exists: true, Bound: true}
	for _, state := range states {
		joined.Foreign = joined.Foreign || state.Foreign
		joined.Exists, joined.Bound = joined.Exists && state.Exists, joined.Bound && state.Bound
		joined.Some, joined.Deleting, joined.Lost = joined.Some || state.Left(), joined.Deleting || state.Deleting, joined.Lost || state.Lost
		joined.BindFirst = joined.BindFirst || state.BindFirst
		joined.Problem = cmp.Or(joined.Problem, state.Problem)
		joined.Unwatched = cmp.Or(joined.Unwatched, state.Unwatched)
	}
	return joined
}
