package imports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/fio"
)

// harmless are fio's options that no runner accepts, but that do not decide what is measured: they can be left out. All others can decide
// it, also those that fio does not know, because they may be misspelt.
var harmless = words(`name description group_reporting thread
	write_bw_log write_lat_log write_hist_log write_iops_log write_iolog log_avg_msec log_hist_msec log_hist_coarseness log_entries
	log_max_value log_offset log_prio log_compression log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch
	log_alternate_epoch_clock_id log_issue_time log_window_value per_job_logs bwavgtime iopsavgtime
	unified_rw_reporting clat_percentiles lat_percentiles slat_percentiles percentile_list lat_percentile block_error_percentiles
	disable_lat disable_clat disable_slat disable_bw_measurement disable_bw gtod_reduce gtod_cpu clocksource stats disk_util unit_base
	significant_figures minimal output output-format eta status-interval bandwidth-log
	directory filename_format unique_filename unlink allow_file_create allow_mounted_write
	exec_prerun exec_postrun trigger trigger_file trigger_timeout trigger_remote
	continue_on_error ignore_error error_dump exitall_on_error
	do_verify verifysort verify_async verify_async_cpus verify_dump verify_fatal verify_interval verify_offset verify_state_save
	nice prio prioclass cgroup cgroup_weight cgroup_nodelete uid gid numa_cpu_nodes numa_mem_policy
	mem iomem mem_align hugepage-size`)

// offAtZero are options that do nothing if they are 0.
var offAtZero = words(`atomic create_only experimental_verify file_append fill_device fill_fs nowait pre_read ramp_size read_iolog_chunked
	startdelay sqthread_poll sync_file_range thinktime_iotime trim_percentage uncached unlink_each_loop verify verify_backlog verify_only`)

func words(text string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		all[word] = true
	}
	return all
}

// leavable reports whether the jobs measure the same without an option.
func leavable(option fio.Option) bool {
	switch option.Value {
	case "0":
		return harmless[option.Name] || offAtZero[option.Name]
	case "none":
		return harmless[option.Name] || slices.Contains([]string{"verify", "zonemode", "lockfile", "write_hint"}, option.Name)
	}
	return harmless[option.Name]
}

// maxRefused limits how many options an error names.
const maxRefused = 8

func (j *jobFile) refuse(format string, values ...any) {
	if len(j.refused) < maxRefused {
		j.refused = append(j.refused, fmt.Sprintf(format, values...))
	}
}

// keep adds an option if the runner accepts it.
func (j *jobFile) keep(line string, section *fio.Section, options *[]fio.Option, names map[string]bool, b *Benchmark) {
	if end := strings.IndexAny(line, ";#"); end >= 0 { // fio also reads the rest of the line as a comment
		line = strings.TrimSpace(line[:end])
	}
	option := fio.ReadOption(line)
	refused := fio.Refused(option)
	switch {
	case option.Name == "name" && section != nil:
		section.Name = unique(option.Value, names)
	case option.Name == "verify" && leavable(option): // the runner does not verify either
	case option.Name == "filename" && strings.HasPrefix(option.Value, "/dev/"):
		b.Block = true
		b.leave("%s: the jobs run on a new block volume, which a fill phase fills first. This device is not used", line)
	case namesFile(option): // ownFiles removes it
		*options = append(*options, option)
	case refused == "":
		*options = append(*options, option)
	case !leavable(option) && !fio.Known(option.Name): // name only the option: the line may come from any file
		j.refuse("%s", fio.Refused(fio.Option{Name: firstWord(line)}))
	case !leavable(option):
		j.refuse("%s", refused)
	case !fio.Known(option.Name):
		b.leave("%s: a runner does not accept it", option.Name)
	default:
		b.leave("%s: %s", line, strings.TrimPrefix(strings.TrimPrefix(refused, option.Name+" is not allowed: "), "remove it: "))
	}
}

// namesFile reports whether an option names a file that is not on the volume of a run.
func namesFile(option fio.Option) bool { return option.Name == "filename" && fio.Refused(option) != "" }

// firstWord returns the name of an option, without its value.
func firstWord(line string) string {
	word, _, _ := strings.Cut(line, "=")
	if words := strings.Fields(word); len(words) > 0 {
		return words[0]
	}
	return "="
}
