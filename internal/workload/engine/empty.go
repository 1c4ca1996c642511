//go:build linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/observe"
)

const (
	// cachedPercent of what a workload can read may be in memory when a phase with a cold cache begins.
	cachedPercent = 5
	// mincoreWindow is how much of a file is mapped and examined at a time.
	mincoreWindow = 1 << 30
)

// emptyCaches drops the page cache of the volume for a phase that declares a cold cache, and checks the result. The cache of ZFS is
// separate: the pool of a zfs target is exported and imported before the pod starts. The data that is still cached only explains reads from
// memory. The workload might not read it, so the counters decide at the end.
func (s *session) emptyCaches(ctx context.Context, declared v1alpha1.CacheExpectation) error {
	if declared != v1alpha1.CacheCold || s.volume.mount.FSType == "zfs" {
		return nil
	}
	if err := s.sync(ctx); err != nil { // dirty pages cannot be dropped
		return err
	}
	var cached, all int64
	visit := func(path string) error {
		one, size, err := dropCached(path)
		cached, all = cached+one, all+size
		return err
	}
	err := inBackground(ctx, func() error {
		if s.volume.block {
			return visit(s.volume.path)
		}
		return s.volume.eachFile(visit)
	})
	if err != nil {
		return fmt.Errorf("empty the caches: %w", err)
	}
	words := fmt.Sprintf("%d of %d bytes were in memory when the workload began", cached, all)
	if cached <= all/100*cachedPercent {
		s.check("emptied", true, "%s", words)
		return nil
	}
	s.undropped = words + ", although the caches were dropped before: another program uses the files, or the file system is in memory"
	s.note("%s", s.undropped)
	return nil
}

// dropCached drops a file or device from the page cache, and returns how many bytes are still cached, and its size.
func dropCached(path string) (cached, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	if size, err = file.Seek(0, io.SeekEnd); err != nil {
		return 0, 0, err
	}
	for at := int64(0); at < size; at += mincoreWindow {
		part, err := cachedIn(file, at, min(mincoreWindow, size-at))
		if err != nil {
			return 0, 0, fmt.Errorf("%s: what is in memory: %w", path, err)
		}
		cached += part
	}
	return min(cached, size), size, nil
}

// cachedIn counts the bytes of the pages that are in memory.
func cachedIn(file *os.File, offset, bytes int64) (cached int64, err error) {
	mapped, err := unix.Mmap(int(file.Fd()), offset, int(bytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, unix.Munmap(mapped)) }()
	page := int64(os.Getpagesize())
	there := make([]byte, (bytes+page-1)/page)
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapped[0])), uintptr(bytes), uintptr(unsafe.Pointer(&there[0])))
	if failed != 0 {
		return 0, failed
	}
	for _, one := range there {
		cached += int64(one&1) * page
	}
	return cached, nil
}

// judgeCache checks whether the reads came from where the declared cache says.
func (s *session) judgeCache(cache v1alpha1.CacheExpectation, readBytes int64, delta observe.Delta) error {
	if readBytes == 0 && (cache == "" || cache == v1alpha1.CacheAny) {
		return nil
	}
	met, words := s.executor.judge(string(cache), readBytes, delta)
	if !met && s.undropped != "" {
		words += "; " + s.undropped
	}
	s.check("cache", met, "%s", words)
	if !met {
		return invalidf(ReasonCacheMismatch, "%s", words)
	}
	return nil
}
