package zfs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const statusJSONCommand = "zpool status -j"

// jsonStatus is the output of OpenZFS 2.3 and newer. The order of the vdevs in the objects matters, hence ordered.
type jsonStatus struct {
	Pools ordered[jsonPool] `json:"pools"`
}

type jsonPool struct {
	Name      string             `json:"name"`
	State     State              `json:"state"`
	GUID      uint64             `json:"pool_guid"`
	Status    string             `json:"status"`
	Action    string             `json:"action"`
	Errors    *int64             `json:"error_count"`
	Scan      *jsonScan          `json:"scan_stats"`
	Removal   *jsonRemoval       `json:"removal_stats"`
	Expansion *jsonExpansion     `json:"raidz_expand_stats"`
	Root      ordered[*jsonVdev] `json:"vdevs"`
	Special   ordered[*jsonVdev] `json:"special"`
	Dedup     ordered[*jsonVdev] `json:"dedup"`
	Logs      ordered[*jsonVdev] `json:"logs"`
	Cache     ordered[*jsonVdev] `json:"l2cache"`
	Spares    ordered[*jsonVdev] `json:"spares"`
}

type jsonVdev struct {
	Name           string             `json:"name"`
	Type           string             `json:"vdev_type"`
	GUID           uint64             `json:"guid"`
	Path           string             `json:"path"`
	Class          string             `json:"class"`
	State          State              `json:"state"`
	Aux            string             `json:"aux"`
	Allocated      int64              `json:"alloc_space"`
	Total          int64              `json:"total_space"`
	Physical       int64              `json:"phys_space"`
	ReadErrors     int64              `json:"read_errors"`
	WriteErrors    int64              `json:"write_errors"`
	ChecksumErrors int64              `json:"checksum_errors"`
	TrimState      string             `json:"trim_state"`
	Trimmed        int64              `json:"trimmed"`
	ToTrim         int64              `json:"to_trim"`
	TrimTime       int64              `json:"trim_time"`
	TrimErrors     int64              `json:"trim_errors"`
	Vdevs          ordered[*jsonVdev] `json:"vdevs"`
}

type jsonScan struct {
	Function  string `json:"function"`
	State     string `json:"state"`
	Start     int64  `json:"start_time"`
	End       int64  `json:"end_time"`
	ToExamine int64  `json:"to_examine"`
	Skipped   int64  `json:"skipped"`
	Issued    int64  `json:"issued"`
	Processed int64  `json:"processed"`
	Errors    int64  `json:"errors"`
	Pause     int64  `json:"scrub_pause"`
}

type jsonRemoval struct {
	State  string `json:"state"`
	Start  int64  `json:"start_time"`
	End    int64  `json:"end_time"`
	ToCopy int64  `json:"to_copy"`
	Copied int64  `json:"copied"`
}

type jsonExpansion struct {
	State    string `json:"state"`
	Start    int64  `json:"start_time"`
	End      int64  `json:"end_time"`
	ToReflow int64  `json:"to_reflow"`
	Reflowed int64  `json:"reflowed"`
}

// ordered are the values of a JSON object in their order in the text.
type ordered[T any] []T

// UnmarshalJSON reads an object and drops its keys: each value repeats its key as its name.
func (o *ordered[T]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	start, err := decoder.Token()
	if err != nil {
		return err
	}
	if start == nil {
		return nil
	}
	if start != json.Delim('{') {
		return fmt.Errorf("expected an object, read %v", start)
	}
	for decoder.More() {
		if _, err := decoder.Token(); err != nil {
			return err
		}
		var value T
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		*o = append(*o, value)
	}
	return nil
}

// parseStatusJSON reads the status of one pool.
func parseStatusJSON(output []byte) (Status, error) {
	var document jsonStatus
	if err := json.Unmarshal(output, &document); err != nil {
		return Status{}, &Error{Kind: Unknown, Command: statusJSONCommand, Stderr: "output is not the JSON expected", Err: err}
	}
	if len(document.Pools) != 1 {
		return Status{}, malformed(statusJSONCommand, "one pool", string(output))
	}
	pool := document.Pools[0]
	if pool.Name == "" || pool.State == "" {
		return Status{}, malformed(statusJSONCommand, "a pool with name and state", string(output))
	}
	status := Status{Pool: pool.Name, GUID: unsigned(pool.GUID), State: pool.State, Message: words(pool.Status),
		Action: words(pool.Action), DataErrors: -1, Scan: pool.Scan.progress()}
	if pool.Errors != nil {
		status.DataErrors = *pool.Errors
	}
	if pool.Removal != nil {
		status.Removal = progress("removal", pool.Removal.State, pool.Removal.Start, pool.Removal.End, pool.Removal.Copied, pool.Removal.ToCopy)
	}
	if pool.Expansion != nil {
		status.Expansion = progress("expansion", pool.Expansion.State, pool.Expansion.Start, pool.Expansion.End,
			pool.Expansion.Reflowed, pool.Expansion.ToReflow)
	}
	groups := []ordered[*jsonVdev]{nil, pool.Special, pool.Dedup, pool.Logs, pool.Cache, pool.Spares}
	for _, root := range pool.Root {
		if root != nil {
			groups[0] = append(groups[0], root.Vdevs...)
			status.State = worse(status.State, root.State)
		}
	}
	for _, group := range groups {
		vdevs, err := vdevStatuses(group)
		if err != nil {
			return Status{}, err
		}
		status.Vdevs = append(status.Vdevs, vdevs...)
	}
	return status, nil
}

// vdevStatuses converts parsed JSON to VdevStatus.
func vdevStatuses(group []*jsonVdev) ([]VdevStatus, error) {
	var vdevs []VdevStatus
	for _, printed := range group {
		if printed == nil || printed.Name == "" || printed.State == "" {
			return nil, malformed(statusJSONCommand, "a vdev with name and state", fmt.Sprintf("%+v", printed))
		}
		children, err := vdevStatuses(printed.Vdevs)
		if err != nil {
			return nil, err
		}
		vdevs = append(vdevs, VdevStatus{Name: printed.Name, Type: printed.Type, GUID: unsigned(printed.GUID), Path: printed.Path,
			Class: printed.Class, State: printed.State, Note: printed.Aux, ReadErrors: printed.ReadErrors,
			WriteErrors: printed.WriteErrors, ChecksumErrors: printed.ChecksumErrors,
			SizeBytes: max(printed.Total, printed.Physical), AllocatedBytes: printed.Allocated, Trim: printed.trim(), Children: children})
	}
	return vdevs, nil
}

func (v *jsonVdev) trim() *Progress {
	states := map[string]ProgressState{"ACTIVE": Running, "SUSPENDED": Paused, "CANCELED": Stopped, "COMPLETE": Finished}
	state, known := states[v.TrimState]
	if !known {
		return nil
	}
	trim := &Progress{Function: "trim", State: state, DoneBytes: v.Trimmed, TotalBytes: v.ToTrim, Errors: v.TrimErrors}
	if state == Running {
		trim.Start = unixTime(v.TrimTime)
	} else {
		trim.End = unixTime(v.TrimTime)
	}
	return trim
}

func (s *jsonScan) progress() *Progress {
	if s == nil {
		return nil
	}
	// A scrub skips data that was written after the scrub began.
	scan := progress(strings.ToLower(s.Function), s.State, s.Start, s.End, s.Issued, max(s.ToExamine-s.Skipped, 0))
	if scan != nil {
		scan.RepairedBytes, scan.Errors = s.Processed, s.Errors
		if scan.State == Running && s.Pause != 0 {
			scan.State = Paused
		}
	}
	return scan
}

func progress(function, state string, start, end, done, total int64) *Progress {
	states := map[string]ProgressState{"SCANNING": Running, "FINISHED": Finished, "CANCELED": Stopped}
	known, isKnown := states[state]
	if !isKnown {
		return nil
	}
	return &Progress{Function: function, State: known, DoneBytes: done, TotalBytes: total, Start: unixTime(start), End: unixTime(end)}
}

func unixTime(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// words joins a text that is printed over several lines.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
