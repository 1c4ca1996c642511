//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/storagebench/storagebench/test/bench/machine"
)

// ticksPerSecond is the unit of the times in /proc, on every Linux.
const ticksPerSecond = 100

// usage is how much processor time was used, in seconds: by this program, and by the API server and etcd together.
type usage struct{ own, servers float64 }

// used measures the usage. Load by others changes it far less than it changes wall-clock times.
func used() (now usage) {
	now.own = machine.ProcessorTime().Seconds()
	processes, _ := os.ReadDir("/proc")
	for _, process := range processes {
		text, err := os.ReadFile("/proc/" + process.Name() + "/stat")
		_, after, named := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		if err != nil || !named || len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, field := range fields[11:13] {
			if ticks, err := strconv.ParseFloat(field, 64); err == nil {
				now.servers += ticks / ticksPerSecond
			}
		}
	}
	return now
}

func (u usage) since(before usage, count int) string {
	return fmt.Sprintf("%.0f ms, API server and etcd %.0f ms", 1000*(u.own-before.own)/float64(count),
		1000*(u.servers-before.servers)/float64(count))
}

// heap returns how many bytes are in use after a garbage collection.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
