package postgres

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// summary is what pgbench prints at its end. Times in milliseconds.
type summary struct {
	transactions, failed int64
	transactionsSeen     bool
	clients, threads     int64
	tps                  float64 // without the time to connect
	latency, deviation   float64
	connectionTime       float64
}

var (
	countLine   = regexp.MustCompile(`^(number of transactions actually processed|number of failed transactions|number of clients|number of threads): (\d{1,18})\b`) //nolint:lll // a pattern is one line
	latencyLine = regexp.MustCompile(`^(latency average|latency stddev|initial connection time) = (\S+) ms`)
	// Version 13 prints both with and without the time to connect.
	tpsLine      = regexp.MustCompile(`^tps = (\S+) \((?:without initial connection time|excluding connections establishing)\)`)
	progressLine = regexp.MustCompile(`^progress: (\S+) s, (\S+) tps, lat (\S+) ms stddev ([^\s,]+)(?:, (\d{1,18}) failed)?`)
)

// parseSummary reads what pgbench of versions 13 to 18 prints. Only the exit status says whether it is the summary of a whole run.
func parseSummary(text string) (summary, error) {
	var s summary
	for line := range strings.SplitSeq(text, "\n") {
		if err := s.take(strings.TrimSpace(line)); err != nil {
			return summary{}, err
		}
	}
	switch {
	case !s.transactionsSeen:
		return summary{}, fmt.Errorf("pgbench printed %.200q, but no number of transactions", text)
	case s.transactions > 0 && s.tps <= 0:
		return summary{}, fmt.Errorf("pgbench printed %.500q, but no rate", text)
	}
	return s, nil
}

func (s *summary) take(line string) error {
	if match := countLine.FindStringSubmatch(line); match != nil {
		number, err := strconv.ParseInt(match[2], 10, 64)
		if err != nil {
			return fmt.Errorf("pgbench printed %.100q: %w", line, err)
		}
		switch match[1] {
		case "number of transactions actually processed":
			s.transactions, s.transactionsSeen = number, true
		case "number of failed transactions":
			s.failed = number
		case "number of clients":
			s.clients = number
		case "number of threads":
			s.threads = number
		}
		return nil
	}
	var into *float64
	var value string
	if match := latencyLine.FindStringSubmatch(line); match != nil {
		into = map[string]*float64{"latency average": &s.latency, "latency stddev": &s.deviation,
			"initial connection time": &s.connectionTime}[match[1]]
		value = match[2]
	} else if match := tpsLine.FindStringSubmatch(line); match != nil {
		into, value = &s.tps, match[1]
	} else {
		return nil
	}
	number, ok := parseNumber(value)
	if !ok {
		return fmt.Errorf("pgbench printed %.100q, which has no valid number", line)
	}
	*into = number
	return nil
}

// commitLine matches the mean latency of a statement that ends a transaction, as pgbench prints it with --report-per-command. From version
// 15 on there are numbers of failures and retries in between.
var commitLine = regexp.MustCompile(`(?mi)^\s*(\d+\.\d+)(?:\s+\d+){0,2}\s+(?:end|commit)\b`)

// commitMilliseconds is the mean latency of the statement that ends transactions. It is 0 if the script has none. pgbench does not print
// how often each statement ran, so the mean of several is not known; why then says so. It prints 0 for a statement that never ran.
func commitMilliseconds(text string) (mean float64, why string) {
	found := commitLine.FindAllStringSubmatch(text, -1)
	if len(found) > 1 {
		return 0, fmt.Sprintf("there is no latency of commits: the script ends transactions with %d statements, and pgbench does not tell how "+
			"often each of them ran: write one COMMIT that all transactions reach", len(found))
	}
	if len(found) == 0 {
		return 0, ""
	}
	if mean, _ = parseNumber(found[0][1]); mean == 0 {
		why = "there is no latency of commits: the statement of the script that ends transactions never ran"
	}
	return mean, why
}

// parseNumber reads a number that is neither negative nor infinite. C prints the result of 0/0 as nan or -nan: that counts as 0.
func parseNumber(text string) (float64, bool) {
	if strings.EqualFold(strings.TrimPrefix(text, "-"), "nan") {
		return 0, true
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number < 0 || math.IsInf(number, 0) || math.IsNaN(number) {
		return 0, false
	}
	return number, true
}

// sample is a line of progress.
type sample struct {
	seconds, tps, latency, deviation float64 // latency in milliseconds
	failed                           int64
}

// parseProgress reads a line of pgbench -P.
func parseProgress(line string) (sample, bool) {
	match := progressLine.FindStringSubmatch(line)
	if match == nil {
		return sample{}, false
	}
	var s sample
	for i, into := range []*float64{&s.seconds, &s.tps, &s.latency, &s.deviation} {
		number, ok := parseNumber(match[i+1])
		if !ok {
			return sample{}, false
		}
		*into = number
	}
	if match[5] != "" {
		failed, err := strconv.ParseInt(match[5], 10, 64)
		if err != nil {
			return sample{}, false
		}
		s.failed = failed
	}
	return s, true
}
