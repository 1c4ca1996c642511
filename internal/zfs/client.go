package zfs

import (
	"context"
)

// Client does what the node agent needs, one method an act.
//
// It checks no ownership: whether a pool is ours is for the caller to find out, with PoolProperties and
// DatasetProperties, immediately before.
type Client struct {
	run Runner
}

// New returns a client that runs its commands through a runner.
func New(run Runner) *Client { return &Client{run: run} }

// do runs a command and discards its output.
func (c *Client) do(ctx context.Context, command Command) error {
	_, err := c.run.Run(ctx, command)
	return err
}
