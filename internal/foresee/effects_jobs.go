package foresee

import (
	"fmt"
	"strconv"

	"github.com/storagebench/storagebench/internal/fio"
	"github.com/storagebench/storagebench/internal/zfs/settings"
)

// ofFill says that a job works on the data of a fill.
func (j job) ofFill() bool { return j.has("filename") }

// isDevice says that workloads work on the volume itself, and not on files.
func (p *place) isDevice() bool { return p.Dataset.Type == settings.Volume && p.Dataset.FSType == "" }

// isFiles says that workloads work on files of ZFS.
func (p *place) isFiles() bool { return p.Dataset.Type != settings.Volume }

// sameBytes finds workers of a job that all read the same bytes: a cache serves all but the first.
func sameBytes(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		workers, _ := strconv.Atoi(j.Set["numjobs"])
		if workers < 2 || !j.ofFill() && !p.isDevice() || j.Mode() != fio.Read || j.has("offset_increment") {
			return ""
		}
		return fmt.Sprintf("all %d workers of job [%s] read the same bytes in the same order, so that a cache serves all but the first: write "+
			"offset_increment, or scan: {streams: %d} in place of fio", workers, j.Name, workers)
	})
}

// holesWritten finds jobs that write at random into files of their own, which fio makes empty: as long as a record is not there, no write
// has to read it first.
func holesWritten(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		block, record := j.block(), p.record()
		whole := block > 0 && record > 0 && block >= record
		if j.Mode() != fio.RandomWrite || j.ofFill() || j.has("overwrite") || whole || !p.isFiles() {
			return ""
		}
		return fmt.Sprintf("job [%s] writes into a file that is empty at first, so that ZFS does not have to read records before it overwrites "+
			"parts of them: write overwrite=1, with which fio fills the file first, or filename=data behind a fill", j.Name)
	})
}

// wholeDevice finds jobs on a device that also reach what was never written. ZFS reads that from memory.
func wholeDevice(_ *comparison, on places) (field, message string) {
	return on.firstJob(func(p *place, j job) string {
		block, record := j.block(), p.record()
		parts := j.Mode() == fio.RandomWrite && (block == 0 || record == 0 || block < record)
		if !p.isDevice() || j.ofFill() || j.has("size") || !j.Reads() && !parts {
			return ""
		}
		return fmt.Sprintf("job [%s] works on the whole device, and ZFS reads what was never written without its disks: write filename=data "+
			"behind a fill", j.Name)
	})
}
