package experiment

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/storagebench/storagebench/api/v1alpha1"
	"github.com/storagebench/storagebench/internal/design"
)

// timetable is a parsed schedule with its time zone.
type timetable struct {
	cron cron.Schedule
	zone *time.Location
}

// CheckSchedule describes an error in a schedule that the API server could not detect.
func CheckSchedule(schedule *v1alpha1.Schedule) error {
	if schedule == nil {
		return nil
	}
	_, err := readSchedule(schedule)
	return err
}

// readSchedule parses a schedule. The errors are SpecErrors.
func readSchedule(schedule *v1alpha1.Schedule) (timetable, error) {
	wrong := func(format string, arguments ...any) (timetable, error) {
		return timetable{}, design.Refuse(v1alpha1.ReasonScheduleInvalid, format, arguments...)
	}
	zone, err := time.LoadLocation(schedule.TimeZone)
	if err != nil || schedule.TimeZone == "Local" { // Go would use the time zone of the manager's machine
		return wrong("spec.schedule.timeZone %q is unknown: write a name of the tz database, such as Europe/Berlin or Etc/UTC",
			schedule.TimeZone)
	}
	// The parser also accepts a time zone prefix and intervals, which are not fixed times. The API server rejects both.
	if strings.Contains(schedule.Cron, "=") || strings.HasPrefix(schedule.Cron, "@every") {
		return wrong("spec.schedule.cron %q is not a cron expression: write five fields, and the time zone in timeZone", schedule.Cron)
	}
	parsed, err := cron.ParseStandard(sundays(schedule.Cron))
	if err != nil {
		return wrong("spec.schedule.cron %q: %v: write minute, hour, day of the month, month and weekday (0-7 or SUN-SAT, smaller first), such "+
			"as '0 3 * * 1'",
			schedule.Cron, err)
	}
	times := timetable{parsed, zone}
	if times.next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return wrong("spec.schedule.cron %q never matches: no listed month has that day; write another day, such as 28", schedule.Cron)
	}
	return times, nil
}

// sundays replaces the weekday 7 by 0. The API accepts 7 for Sunday, as crontab(5) does, but the parser does not.
func sundays(expression string) string {
	fields := strings.Fields(expression)
	if len(fields) != 5 || !strings.Contains(fields[4], "7") {
		return expression
	}
	items := strings.Split(fields[4], ",")
	for i, item := range items {
		days, step, stepped := strings.Cut(item, "/")
		first, last, _ := strings.Cut(days, "-")
		if last == "" {
			last = first
		}
		from, err := strconv.Atoi(first)
		by := 1
		if stepped && err == nil {
			by, err = strconv.Atoi(step)
		}
		if last != "7" || err != nil || by < 1 {
			continue // the parser reports any error in it
		}
		var list []string
		for day := from; day <= 7; day += by {
			list = append(list, strconv.Itoa(day%7))
		}
		items[i] = strings.Join(list, ",")
	}
	fields[4] = strings.Join(items, ",")
	return strings.Join(fields, " ")
}

// next returns the first scheduled time after the given time, or zero if there is none within five years.
func (t timetable) next(after time.Time) time.Time {
	return t.cron.Next(after.In(t.zone))
}

// latest returns the last scheduled time that is after the first argument and not after the second, or zero if there is none. It uses
// bisection, because the range may span years of minutes.
func (t timetable) latest(after, until time.Time) time.Time {
	in := func(at time.Time) bool { return !at.IsZero() && !at.After(until) }
	found, end := t.next(after), until
	if !in(found) {
		return time.Time{}
	}
	for {
		next := t.next(found)
		if !in(next) {
			return found
		}
		middle := found.Add(end.Sub(found) / 2)
		if later := t.next(middle); in(later) {
			found = latestOf(next, later)
		} else {
			found, end = next, middle
		}
	}
}

// maxSkipped is where count stops.
const maxSkipped = 100

// count returns the number of scheduled times that are after the first argument and not after the second, at most maxSkipped.
func (t timetable) count(after, until time.Time) int {
	n := 0
	for at := t.next(after); n < maxSkipped && !at.IsZero() && !at.After(until); at = t.next(at) {
		n++
	}
	return n
}

// say formats a time in the time zone of the schedule.
func (t timetable) say(at time.Time) string {
	return at.In(t.zone).Format(time.RFC3339)
}

// latestOf returns the latest of the given times.
func latestOf(moments ...time.Time) time.Time {
	return slices.MaxFunc(moments, time.Time.Compare)
}
