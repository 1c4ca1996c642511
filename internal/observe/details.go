package observe

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/storagebench/storagebench/internal/spelling"
)

// describe returns details of the volume and of the devices below it.
func (o *Observer) describe() volumeDetails {
	var into volumeDetails
	if o.mount != nil {
		into.FileSystem = spelling.Shorten(o.mount.FSType, 40)
	}
	if o.zfs != nil {
		into.Dataset, into.Pool, into.RecordSize = spelling.Shorten(o.zfs.dataset, 256), o.zfs.pool, clip(o.zfs.recordSize)
	}
	counted := o.devices.counted()
	for _, d := range o.devices.all {
		into.Devices = append(into.Devices, deviceDetail{Name: d.name, Kind: d.kind, Below: namesOf(d.below),
			Counted: slices.Contains(counted, d)})
	}
	return into
}

func namesOf(devices []*device) []string {
	var names []string
	for _, d := range devices {
		names = append(names, d.name)
	}
	return names
}

// encodeDetails omits the least important details until the rest fits: first the rates, which can be recomputed, then sources.
func encodeDetails(d details) json.RawMessage {
	encoded := marshal(d)
	if len(encoded) <= maxDetailBytes {
		return encoded
	}
	names := slices.SortedFunc(maps.Keys(d.Sources), func(a, b string) int {
		if rank(a) != rank(b) {
			return rank(b) - rank(a)
		}
		return strings.Compare(b, a)
	})
	d.Sources = maps.Clone(d.Sources)
	for _, name := range names {
		lean := d.Sources[name]
		lean.PerSecond = nil
		d.Sources[name] = lean
	}
	d.Omitted = []string{"perSecond"}
	for len(marshal(d)) > maxDetailBytes && len(names) > 0 {
		delete(d.Sources, names[0])
		names = names[1:]
		d.Omitted = append(d.Omitted[:1:1], "the sources that are missing here")
	}
	if encoded = marshal(d); len(encoded) > maxDetailBytes {
		d.Volume.Devices = nil
		d.Omitted = append(d.Omitted, "volume.devices")
		encoded = marshal(d)
	}
	return encoded
}

// marshal can't fail: there are only texts and whole numbers.
func marshal(d details) json.RawMessage {
	encoded, err := json.Marshal(d)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return encoded
}
