package guard

import "os"

// doWithin is like within, but for functions without a result.
func (b *Bounded) doWithin(at string, do func() error) error {
	_, err := within(b, at, at, b.patience(), func(<-chan struct{}) (struct{}, error) { return struct{}{}, do() })
	return err
}

// MakeMountPoint needs a time limit because it walks to a folder that may be the mount point of a pool that does not respond.
func (b *Bounded) MakeMountPoint(top, point string) error {
	return b.doWithin(point, func() error { return b.Disks.MakeMountPoint(top, point) })
}

// MakeVolumeFolder needs a time limit because it writes to a dataset.
func (b *Bounded) MakeVolumeFolder(top, point, dataset string) error {
	return b.doWithin(point, func() error { return b.Disks.MakeVolumeFolder(top, point, dataset) })
}

// Mounted needs a time limit because it looks into a dataset.
func (b *Bounded) Mounted(top, point, dataset string) (bool, error) {
	return within(b, point, point, b.patience(), func(<-chan struct{}) (bool, error) { return b.Disks.Mounted(top, point, dataset) })
}

// OpenDataset needs a time limit because it mounts a dataset. A result that arrives after the time limit is closed.
func (b *Bounded) OpenDataset(dataset string, readOnly bool) (*os.Root, error) {
	return within(b, "dataset "+dataset, "dataset "+dataset, b.patience(), func(givenUp <-chan struct{}) (*os.Root, error) {
		root, err := b.Disks.OpenDataset(dataset, readOnly)
		select {
		case <-givenUp:
			if root != nil {
				_ = root.Close() // the caller has stopped waiting
			}
			return nil, err
		default:
			return root, err
		}
	})
}
