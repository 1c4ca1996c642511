package zfs

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const statusTextCommand = "zpool status"

// parseStatusText reads the status of one pool as versions before 2.3 print it.
func parseStatusText(output []byte) (Status, error) {
	var status Status
	sections := textSections(string(output))
	status.Pool = sections["pool"]
	status.State = State(sections["state"])
	if status.Pool == "" || status.State == "" {
		return Status{}, malformed(statusTextCommand, "lines 'pool:' and 'state:'", string(output))
	}
	status.Message, status.Action = words(sections["status"]), words(sections["action"])
	status.Scan = scanText(sections["scan"])
	status.Removal = removalText(sections["remove"])
	errors, err := dataErrors(sections["errors"])
	if err != nil {
		return Status{}, err
	}
	status.DataErrors = errors
	root, vdevs, err := treeText(sections["config"], status.Pool)
	if err != nil {
		return Status{}, err
	}
	status.State = worse(status.State, root)
	status.Vdevs = vdevs
	return status, nil
}

var headPattern = regexp.MustCompile(`^ {0,4}(pool|state|status|action|see|scan|remove|checkpoint|expand|scrub|config|errors|comment|id): ?(.*)$`) //nolint:lll // a pattern is one line

// textSections cuts the output at its headings. Lines that belong to a heading are indented with a tab or empty.
func textSections(output string) map[string]string {
	sections := map[string]string{}
	current := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if match := headPattern.FindStringSubmatch(line); match != nil {
			current = match[1]
			if _, twice := sections[current]; twice {
				current = ""
				continue
			}
			sections[current] = match[2]
			continue
		}
		if current != "" {
			sections[current] += "\n" + line
		}
	}
	return sections
}

// classes are the headings between the vdevs.
var classes = map[string]string{"special": "special", "dedup": "dedup", "logs": "log", "cache": "l2cache", "spares": "spare"}

// treeText reads the table of vdevs. Each level is indented by two more spaces.
func treeText(table, pool string) (State, []VdevStatus, error) {
	var root State
	var vdevs []VdevStatus
	// path has the list for the children at each depth.
	path := []*[]VdevStatus{&vdevs}
	class := "normal"
	for line := range strings.Lines(table) {
		line = strings.TrimRight(strings.TrimPrefix(line, "\t"), "\n ")
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		fields := strings.Fields(name)
		if len(fields) == 0 || fields[0] == "NAME" && root == "" {
			continue
		}
		if known := classes[fields[0]]; known != "" && depth == 0 && len(fields) == 1 {
			class, path = known, path[:1]
			continue
		}
		vdev, err := vdevText(fields, class)
		if err != nil {
			return "", nil, err
		}
		if depth == 0 && vdev.Name == pool && root == "" {
			root = vdev.State
			continue
		}
		if depth < 1 || depth > len(path) {
			return "", nil, malformed(statusTextCommand, "a vdev below another", line)
		}
		siblings := path[depth-1]
		*siblings = append(*siblings, vdev)
		path = append(path[:depth], &(*siblings)[len(*siblings)-1].Children)
	}
	if root == "" {
		return "", nil, malformed(statusTextCommand, "a line of pool "+pool, table)
	}
	return root, vdevs, nil
}

func vdevText(fields []string, class string) (VdevStatus, error) {
	if len(fields) < 2 {
		return VdevStatus{}, malformed(statusTextCommand, "a vdev and its state", strings.Join(fields, " "))
	}
	vdev := VdevStatus{Name: fields[0], State: State(fields[1]), Class: class, Type: typeOf(fields[0])}
	if strings.HasPrefix(vdev.Name, "/") {
		vdev.Path = vdev.Name
	}
	rest := fields[2:]
	// Spares have no counters.
	if len(rest) >= 3 && digits(rest[0]) {
		for at, counter := range []*int64{&vdev.ReadErrors, &vdev.WriteErrors, &vdev.ChecksumErrors} {
			value, err := strconv.ParseInt(rest[at], 10, 64)
			if err != nil {
				return VdevStatus{}, malformed(statusTextCommand, "a whole number of errors", rest[at])
			}
			*counter = value
		}
		rest = rest[3:]
	}
	note := strings.Join(rest, " ")
	vdev.Trim = trimText(note)
	if note == "(trimming)" {
		vdev.Trim = &Progress{Function: "trim", State: Running}
	}
	if vdev.Trim == nil && note != "(untrimmed)" && note != "(trim unsupported)" {
		vdev.Note = note
	}
	return vdev, nil
}

func digits(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil
}

func typeOf(name string) string {
	if strings.HasPrefix(name, "/dev/") {
		return "disk"
	}
	for _, kind := range []string{"mirror", "raidz", "draid", "spare", "replacing"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	return ""
}

var (
	trimPattern     = regexp.MustCompile(`\(([0-9]{1,3})% trimmed, (started|suspended, started|completed) at ([^)]+)\)`)
	donePattern     = regexp.MustCompile(`(\S+) (?:repaired|resilvered), ([0-9.]+)% done`)
	finishedPattern = regexp.MustCompile(`^(?:scrub repaired|resilvered)(?: \(\S+\))? (\S+) in (.*) with ([0-9]+) errors on (.*)$`)
	tookPattern     = regexp.MustCompile(`^(?:([0-9]{1,5}) days )?([0-9]{2}):([0-9]{2}):([0-9]{2})$`)
	totalPattern    = regexp.MustCompile(`([0-9.]+[BKMGTPEZ])(?:/s)?,? (?:total|issued(?: at \S+)?)$`)
	sincePattern    = regexp.MustCompile(`(?:since|started on|canceled on) (.*)$`)
	copiedPattern   = regexp.MustCompile(`copied ([0-9.]+[BKMGTPE]?) in `)
	removalPattern  = regexp.MustCompile(`(\S+) copied out of (\S+) at \S+, ([0-9.]+)% done`)
	errorsPattern   = regexp.MustCompile(`^([0-9]+) data errors`)
)

func trimText(note string) *Progress {
	match := trimPattern.FindStringSubmatch(note)
	if match == nil {
		return nil
	}
	percent, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return nil
	}
	trim := &Progress{Function: "trim", DoneBytes: percent, TotalBytes: 100, State: Running, Start: date(match[3])}
	switch {
	case strings.HasPrefix(match[2], "suspended"):
		trim.State = Paused
	case match[2] == "completed":
		trim.State, trim.Start, trim.End = Finished, time.Time{}, date(match[3])
	}
	return trim
}

// scanText reads a scrub or resilver. The text has rounded amounts, so the done part is computed from the percentage, which is more exact.
// After the end, it does not say how much there was.
func scanText(text string) *Progress {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first == "" || first == "none requested" {
		return nil
	}
	scan := &Progress{Function: "scrub", State: Running}
	if strings.HasPrefix(first, "resilver") {
		scan.Function = "resilver"
	}
	if match := finishedPattern.FindStringSubmatch(first); match != nil {
		scan.State, scan.RepairedBytes, scan.End = Finished, amount(match[1]), date(match[4])
		// The pattern admits digits only.
		scan.Errors, _ = strconv.ParseInt(match[3], 10, 64)
		if took, known := tookText(match[2]); known && !scan.End.IsZero() {
			scan.Start = scan.End.Add(-took)
		}
		return scan
	}
	if match := sincePattern.FindStringSubmatch(first); match != nil {
		scan.Start = date(match[1])
	}
	switch {
	case strings.Contains(first, "canceled on"):
		scan.State, scan.Start, scan.End = Stopped, time.Time{}, scan.Start
		return scan
	case strings.Contains(first, "paused since"):
		scan.State = Paused
	case !strings.Contains(first, "in progress since"):
		return nil
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if match := sincePattern.FindStringSubmatch(line); match != nil {
			scan.Start = date(match[1])
		}
		if match := totalPattern.FindStringSubmatch(line); match != nil {
			scan.TotalBytes = amount(match[1])
		}
		if match := donePattern.FindStringSubmatch(line); match != nil {
			scan.RepairedBytes = amount(match[1])
			if percent, err := strconv.ParseFloat(match[2], 64); err == nil {
				scan.DoneBytes = share(percent, scan.TotalBytes)
			}
		}
	}
	return scan
}

// tookText reads the time from the start of a scan to its end, such as "1 days 02:03:04".
func tookText(text string) (took time.Duration, known bool) {
	match := tookPattern.FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	for at, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		// The pattern admits a few digits only; without days there are none.
		number, _ := strconv.Atoi(match[1+at])
		took += time.Duration(number) * unit
	}
	return took, true
}

// removalText reads the removal of a vdev.
func removalText(text string) *Progress {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case strings.HasPrefix(first, "Removal of") && strings.Contains(first, "completed on"):
		_, end, _ := strings.Cut(first, "completed on ")
		removal := &Progress{Function: "removal", State: Finished, End: date(end)}
		if match := copiedPattern.FindStringSubmatch(first); match != nil {
			removal.DoneBytes = amount(match[1])
			removal.TotalBytes = removal.DoneBytes
		}
		return removal
	case strings.HasPrefix(first, "Removal of") && strings.Contains(first, "canceled on"):
		_, end, _ := strings.Cut(first, "canceled on ")
		return &Progress{Function: "removal", State: Stopped, End: date(end)}
	case strings.HasPrefix(first, "Evacuation of"):
		_, since, _ := strings.Cut(first, "since ")
		removal := &Progress{Function: "removal", State: Running, Start: date(since)}
		if match := removalPattern.FindStringSubmatch(rest); match != nil {
			removal.TotalBytes = amount(match[2])
			if percent, err := strconv.ParseFloat(match[3], 64); err == nil {
				removal.DoneBytes = share(percent, removal.TotalBytes)
			}
		}
		return removal
	}
	return nil
}

func dataErrors(text string) (int64, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case first == "" || first == "No known data errors":
		return 0, nil
	case strings.HasPrefix(first, "List of errors unavailable"):
		return -1, nil
	case strings.HasPrefix(first, "Permanent errors"):
		return int64(max(len(strings.Split(strings.TrimSpace(text), "\n"))-2, 1)), nil
	}
	match := errorsPattern.FindStringSubmatch(first)
	if match == nil {
		return 0, malformed(statusTextCommand, "the number of data errors", first)
	}
	return strconv.ParseInt(match[1], 10, 64)
}

func share(percent float64, total int64) int64 {
	if percent < 0 || percent > 100 {
		return 0
	}
	return int64(percent / 100 * float64(total))
}

// date reads the output of ctime. It is in UTC, because the environment of the program asks for that.
func date(text string) time.Time {
	parsed, err := time.Parse(time.ANSIC, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}
	}
	return parsed
}

// amount reads a rounded number of bytes such as 1.25G.
func amount(text string) int64 {
	units := "BKMGTPE"
	if text == "" {
		return 0
	}
	factor := 1.0
	if at := strings.IndexByte(units, text[len(text)-1]); at >= 0 {
		for range at {
			factor *= 1024
		}
		text = text[:len(text)-1]
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value*factor < 1<<60) { // NaN compares with nothing
		return 0
	}
	return int64(value * factor)
}
