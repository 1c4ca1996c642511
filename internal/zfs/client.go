package zfs

import (
	"context"
)

// Client runs the actions that the node agent needs, with one method for each action.
//
// It does not check ownership: immediately before each action, the caller must prove that a pool is ours, with PoolProperties and
// DatasetProperties.
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
