package experiment

import (
	"fmt"
	"slices"

	"github.com/storagebench/storagebench/api/v1alpha1"
)

// stepNode selects a node, or as many as requested.
func stepNode(state State, decision *Decision) bool {
	if len(decision.NodeNames) > 0 {
		return false
	}
	if state.ClusterUnread {
		decision.say(PositionWaiting, v1alpha1.ReasonNoNode,
			"the manager is not allowed to read nodes: set podTemplate.nodeSelector, such as kubernetes.io/hostname: worker-1, if that is also "+
				"the name of the node")
		releaseIfIdle(state, decision)
		return true
	}
	if waitForItsNode(state, decision) {
		return true
	}
	few, another := "no node is", "a node"
	if count := nodeCount(state); count > 1 {
		few, another = fmt.Sprintf("%d of the %d nodes of target.zfs.nodes.count are", len(state.Nodes), count), "more nodes"
	}
	decision.say(PositionWaiting, v1alpha1.ReasonNoNode,
		"%s Ready and allowed by podTemplate.nodeSelector and tolerations%s: relax these, or make %s ready", few, zfsNodes(state), another)
	releaseIfIdle(state, decision)
	return true
}

// zfsNodes describes the additional requirements of a zfs target on a node.
func zfsNodes(state State) string {
	if len(state.Slots) == 0 || state.Slots[0].Target.ZFS == nil {
		return ""
	}
	return ", target.zfs.nodes.matchLabels, and the label " + v1alpha1.LabelLabNode + "=true of nodes with an agent"
}

// stepUnfit waits for a node of the experiment that no longer fits: a run there would fail without another attempt. Meanwhile other
// benchmarks can use the nodes, unless a pool with the data of earlier repetitions is kept on one of them.
func stepUnfit(state State, decision *Decision) bool {
	node, next := unfitNode(state, decision.NodeNames), decision.Tally.Next
	if node == "" || next == nil || unsettled(state) != nil {
		return false
	}
	decision.say(PositionWaiting, v1alpha1.ReasonNoNode, "run %d of %d (%s, repetition %d) waits for node %s, where its earlier runs were: "+
		"it is not Ready, or no longer fits podTemplate.nodeSelector and tolerations%s", next.Index+1, decision.Tally.Total, next.Variant,
		next.Repetition, node, zfsNodes(state))
	if len(state.Pools) == 0 {
		releaseIfIdle(state, decision)
	}
	return true
}

// unfitNode returns a node of the experiment on which no pod can start now, or "" if there is none or the manager cannot know.
func unfitNode(state State, nodes []string) string {
	at := slices.IndexFunc(nodes, func(node string) bool { return !offered(state.Nodes, node) })
	if state.ClusterUnread || at < 0 {
		return ""
	}
	return nodes[at]
}
