package fio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// allowed are the options that a user's job file may set, each with what its value may look like. Other options are refused: they could run
// commands, leave the volume, or make the report unreadable.
var allowed = allowedOptions()

func allowedOptions() map[string]values {
	options := map[string]values{}
	for _, group := range []struct {
		values values
		names  string
	}{
		{size, `offset_align buffer_compress_chunk`},
		{blockSizes, `bs blocksize blockalign ba`},
		{sizes, `rate rate_min`},
		{sizeRanges, `bsrange blocksize_range`},
		{sizeRange, `filesize file_size`},
		{sizeShare, `size io_size offset offset_increment`},
		{count, `number_ios nrfiles openfiles iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min
			iodepth_batch_complete_max iodepth_low loops thinktime_blocks fsync fdatasync randseed flow flow_id flow_sleep`},
		{counts, `rate_iops rate_iops_min`},
		{plain(`[0-9]{1,18}`, fmt.Sprintf("write a whole number from 1 to %d", maxUserWorkers)), `numjobs`},
		{percentage, `rwmixread rwmixwrite buffer_compress_percentage dedupe_percentage dedupe_working_set_percentage`},
		{shares, `percentage_random perc_rand`},
		{seconds, `runtime timeout ramp_time`},
		{microtimes, `thinktime thinktime_spin latency_target latency_window max_latency`},
		{percentile, `latency_percentile`},
		{flag, `time_based stonewall wait_for_previous new_group group_reporting thread randrepeat norandommap softrandommap
			refill_buffers scramble_buffers zero_buffers direct buffered invalidate end_fsync fsync_on_close
			overwrite create_serialize create_fsync create_on_open hipri fixedbufs registerfiles nonvectored force_async
			bs_unaligned blocksize_unaligned exitall latency_run allrandrepeat`},
		{plain(`(read|write|randread|randwrite|rw|readwrite|randrw)(:[0-9]{1,9}[kmg]?)?`,
			"write read, write, randread, randwrite, rw or randrw"), `rw readwrite`},
		{plain(`psync|pvsync|pvsync2|sync|vsync|libaio|io_uring|posixaio`,
			"write psync, pvsync, pvsync2, sync, vsync, libaio, io_uring or posixaio"), `ioengine`},
		{plain(split+`([:,]`+split+`)*`, "write sizes with their shares in percent, such as 4k/60:64k/40"), `bssplit`},
		{plain(`random|(zipf|pareto|normal)(:[0-9]{1,9}(\.[0-9]{1,9})?(/[0-9]{1,9}(\.[0-9]{1,9})?)?)?|zoned(_abs)?:[0-9a-z/:,]+`,
			"write random, zipf:1.2, pareto:0.9, normal:20, or zoned:50/5:30/15:20/80"), `random_distribution`},
		{plain(`[a-z_0-9]+`, "write a word of fio's manual"),
			`dedupe_mode file_service_type random_generator rw_sequencer rate_process thinktime_blocks_type cpus_allowed_policy`},
		{plain(`[0-9][0-9,-]*`, "write the numbers of processors, such as 0-3"), `cpus_allowed`},
		{plain(`[\w .,()+/-]{1,200}`, "write a plain sentence"), `description`},
		{plain(`data`, "remove it (the jobs get their own files on the volume), or write filename=data for the data of a fill phase"),
			`filename`},
		{plain(`none|native|posix|keep|truncate|0|1`, "write none, native, posix, keep or truncate"), `fallocate`},
		{plain(`none|sync|dsync|0|1`, "write 0, 1, dsync or sync"), `sync`},
	} {
		for _, name := range strings.Fields(group.names) {
			options[name] = group.values
		}
	}
	return options
}

// split is a block size with its share of the requests in percent. Without a share, it has its part of the rest.
const split = `[0-9]{1,9}[kmg]?b?(/[0-9]{0,3})?`

// remedies for options that people are likely to write. Everything else gets a general sentence.
var remedies = refusedOptions()

func refusedOptions() map[string]string {
	options := map[string]string{}
	for _, group := range []struct{ names, remedy string }{
		{`exec_prerun exec_postrun trigger trigger_file trigger_timeout trigger_remote`, "remove it: a job file runs no commands"},
		{`directory filename_format opendir`, "remove it: the runner chooses the location of files on the volume"},
		{`write_bw_log write_lat_log write_hist_log write_iops_log log_avg_msec log_hist_msec log_max_value log_offset write_iolog
			read_iolog replay_redirect merge_blktrace_file per_job_logs`,
			"remove it: the runner keeps the report; write_*_log and *_iolog name files outside the volume"},
		{`hostname port protocol listen server client interface nodelay ttl`, "remove it: a job file opens no connections"},
		{`unified_rw_reporting clat_percentiles lat_percentiles slat_percentiles percentile_list disable_lat disable_clat disable_slat
			gtod_reduce lat_percentile output output-format eta status-interval significant_figures`,
			"remove it: the runner decides what is reported"},
		{`continue_on_error ignore_error error_dump`, "remove it: a failed operation always makes the phase Invalid"},
		{`steadystate ss ss_dur ss_ramp steadystate_duration steadystate_ramp_time`,
			"remove it, and set steadyState in the measure phase: the runner repeats the job until it holds"},
		{`unlink unlink_each_loop file_append fill_device`, "remove it: the runner makes and removes the files"},
		{`verify verify_pattern do_verify verifysort verify_async verify_only verify_dump verify_state_save`,
			"remove it: a benchmark does not verify contents"},
		{`buffer_pattern`, "remove it: a pattern can name a file; use buffer_compress_percentage or zero_buffers"},
		{`ioscheduler cgroup cgroup_weight cgroup_nodelete uid gid nice prio prioclass numa_cpu_nodes numa_mem_policy`,
			"remove it: a workload pod changes nothing on its node"},
		{`startdelay`,
			"remove it: fio excludes the delay from the measured time; use stonewall for a job that waits for earlier ones"},
		{`include`, "write the options themselves: a job file includes no other file"},
		{`ramp_size mem iomem mem_align hugepage-size`, "remove it: the runner uses ordinary memory"},
		{`allow_file_create allow_mounted_write pre_read profile`, "remove it: the runner decides this"},
	} {
		for _, name := range strings.Fields(group.names) {
			options[name] = group.remedy
		}
	}
	return options
}

// Known reports whether a name is that of an option, allowed or not.
func Known(name string) bool {
	_, may := allowed[name]
	return may || remedies[name] != ""
}

// Refused says why a user's job file may not set an option, and what to do. Empty if it may.
func Refused(option Option) string {
	name, value := option.Name, option.Value
	may, known := allowed[name]
	switch {
	case !known && remedies[name] != "":
		return fmt.Sprintf("%s is not allowed: %s", name, remedies[name])
	case !known && optionName.MatchString(name):
		remedy := "remove it"
		if meant := spelling.Slip(name, slices.Sorted(maps.Keys(allowed))); meant != "" {
			remedy = "did you mean " + meant + "? Otherwise remove it"
		}
		return fmt.Sprintf("%s is not an allowed option in a job file: %s, or see docs/reference/runner.md for the list", name, remedy)
	case !known:
		return fmt.Sprintf("%.60q is not an option: write NAME=VALUE with fio's own name in lower case", name)
	case strings.ContainsAny(value, "$`'\"\\;"):
		return fmt.Sprintf("%s=%.60q is not allowed: write a plain value as in fio's manual, without '$', quotes or paths", name, value)
	case !may.pattern.MatchString(value):
		return fmt.Sprintf("%s=%.60q is not allowed: %s", name, value, may.instead(name, value))
	}
	return ""
}
