package lab

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
)

// LoadImages imports image archives (docker-archive or OCI) into the container runtime of every node.
func (l *Lab) LoadImages(ctx context.Context, archives []string) error {
	s, err := l.load()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range s.nodes() {
		group.Go(func() error {
			for _, archive := range archives {
				if err := l.loadImage(ctx, node, archive); err != nil {
					return fmt.Errorf("load %s into node %s: %w", archive, node, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (l *Lab) loadImage(ctx context.Context, node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	command, err := l.Command(ctx, node, "ctr", "--namespace", "k8s.io", "images", "import", "-")
	if err != nil {
		return err
	}
	var complaint strings.Builder
	command.Stdin, command.Stderr = file, &complaint
	if err := command.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return nil
}
