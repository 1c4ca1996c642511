package fio

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// allowed are the options that a user's job file may set, each with what its value may look like. Other options are refused: they could run
// commands, leave the volume, or make the report unreadable.
var allowed = allowedOptions()

var (
	amounts   = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?\s?([a-zA-Z]{0,3}|%)([,:-][0-9]+[a-zA-Z]{0,3})*$`)
	flags     = regexp.MustCompile(`^[01]?$`)
	modes     = regexp.MustCompile(`^(read|write|randread|randwrite|rw|readwrite|randrw)(:[0-9]+[a-zA-Z]?)?$`)
	engines   = regexp.MustCompile(`^(psync|pvsync|pvsync2|sync|vsync|libaio|io_uring|posixaio)$`)
	words     = regexp.MustCompile(`^[a-z_0-9]+$`)
	splits    = regexp.MustCompile(`^[0-9]+[a-zA-Z]{0,3}(/[0-9]*)?([:,][0-9]+[a-zA-Z]{0,3}(/[0-9]*)?)*$`)
	spreads   = regexp.MustCompile(`^(random|(zipf|pareto|normal|zoned|zoned_abs)(:[0-9a-zA-Z.,/:%]+)?)$`)
	processes = regexp.MustCompile(`^[0-9][0-9,-]*$`)
	sentences = regexp.MustCompile(`^[\w .,()+/-]{1,200}$`)
	dataOnly  = regexp.MustCompile(`^data$`)
	preAlloc  = regexp.MustCompile(`^(none|native|posix|keep|truncate|0|1)$`)
	syncWords = regexp.MustCompile(`^(none|sync|dsync|0|1)$`)
)

func allowedOptions() map[string]*regexp.Regexp {
	options := map[string]*regexp.Regexp{}
	for _, group := range []struct {
		values *regexp.Regexp
		names  string
	}{
		{amounts, `bs blocksize blockalign ba bsrange blocksize_range size io_size filesize file_size offset offset_increment offset_align
			number_ios nrfiles openfiles iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min
			iodepth_batch_complete_max iodepth_low numjobs loops runtime timeout ramp_time thinktime thinktime_spin
			thinktime_blocks rwmixread rwmixwrite percentage_random perc_rand rate rate_min rate_iops rate_iops_min fsync fdatasync
			buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_working_set_percentage randseed
			allrandrepeat latency_target latency_window latency_percentile flow flow_id flow_sleep max_latency`},
		{flags, `time_based stonewall wait_for_previous new_group group_reporting thread randrepeat norandommap softrandommap
			refill_buffers scramble_buffers zero_buffers direct buffered invalidate end_fsync fsync_on_close
			overwrite create_serialize create_fsync create_on_open hipri fixedbufs registerfiles nonvectored force_async
			bs_unaligned blocksize_unaligned exitall latency_run`},
		{modes, `rw readwrite`}, {engines, `ioengine`}, {splits, `bssplit`}, {spreads, `random_distribution`},
		{words, `dedupe_mode file_service_type random_generator rw_sequencer rate_process thinktime_blocks_type cpus_allowed_policy`},
		{processes, `cpus_allowed`}, {sentences, `description`}, {dataOnly, `filename`}, {preAlloc, `fallocate`}, {syncWords, `sync`},
	} {
		for _, name := range strings.Fields(group.names) {
			options[name] = group.values
		}
	}
	return options
}

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
func Known(name string) bool { return allowed[name] != nil || remedies[name] != "" }

// Refused says why a user's job file may not set an option, and what to do. Empty if it may.
func Refused(option Option) string {
	name, value := option.Name, option.Value
	pattern, known := allowed[name]
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
	case !pattern.MatchString(value):
		return fmt.Sprintf("%s=%.60q is not allowed: %s", name, value, valueRemedy(name))
	}
	return ""
}

func valueRemedy(name string) string {
	switch name {
	case "ioengine":
		return "write psync, pvsync, pvsync2, sync, vsync, libaio, io_uring or posixaio"
	case "rw", "readwrite":
		return "write read, write, randread, randwrite, rw or randrw"
	case "filename":
		return "remove it (the jobs get their own files on the volume), or write filename=data for the data of a fill phase"
	case "fallocate":
		return "write none, native, posix, keep or truncate"
	case "sync":
		return "write 0, 1, dsync or sync"
	}
	return "write a plain value as in fio's manual, without '$', quotes or paths"
}
