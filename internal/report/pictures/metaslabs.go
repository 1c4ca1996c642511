package pictures

import (
	"slices"

	"github.com/storagebench/storagebench/internal/poolseries"
	"github.com/storagebench/storagebench/internal/report"
	"github.com/storagebench/storagebench/internal/report/svg"
	"github.com/storagebench/storagebench/internal/results"
)

// metaslabs shows where a pool has free space, and how large its pieces are: the first map of each phase and variant.
type metaslabs struct {
	lines lineIDs
	maps  map[line]*poolseries.MetaslabMap
}

func newMetaslabs(results.Experiment) room {
	return &metaslabs{maps: map[line]*poolseries.MetaslabMap{}}
}

func (m *metaslabs) add(one seen) {
	of := line{one.Document.Phase, one.Variant}
	if one.Metaslabs == nil || m.maps[of] != nil {
		return
	}
	m.lines.add(of)
	m.maps[of] = one.Metaslabs
}

func (m *metaslabs) pictures() []report.Picture {
	var drawn []report.Picture
	for _, lines := range m.lines.charts() {
		title := "Free space along the disks: " + about(lines)
		along := svg.Chart{ID: slug(title), Title: title, Description: "Free part of each metaslab, one top-level vdev after another.",
			X: svg.Axis{Label: "place on the disks", Unit: svg.Bytes, FromZero: true},
			Y: svg.Axis{Label: "free part of the metaslab", Unit: svg.PartsPerMillion, FromZero: true}}
		for i, of := range lines {
			if points, breaks := places(m.maps[of].Metaslabs); len(points) > 0 {
				along.Marks = append(along.Marks, svg.Line{Name: label(of, lines), Series: i, Points: points, Breaks: breaks, Marked: true})
			}
		}
		if len(along.Marks) > 0 {
			drawn = append(drawn, picture("disks", "places-"+about(lines), title, "The first run of each variant.", along))
		}
		if pieces, any := m.pieces(lines); any {
			drawn = append(drawn, picture("disks", "pieces-"+about(lines), pieces.Title, "The first run of each variant.", pieces))
		}
	}
	return drawn
}

// places returns the free part of each metaslab, at the middle of the metaslab, with a break before each vdev. All metaslabs of a vdev are
// as large as the distance between the first two. A vdev with a single metaslab is left out, because its size is not known.
func places(all []poolseries.Metaslab) (points []svg.Point, breaks []int) {
	var before int64 // the size of the vdevs that were drawn already
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(one poolseries.Metaslab) bool { return one.Vdev != all[0].Vdev })
		if end < 0 {
			end = len(all)
		}
		vdev := all[:end]
		if all = all[end:]; len(vdev) < 2 || vdev[1].Offset <= vdev[0].Offset {
			continue
		}
		size := vdev[1].Offset - vdev[0].Offset
		breaks = append(breaks, len(points))
		for _, one := range vdev {
			points = append(points, svg.Point{X: float64(before + one.Offset + size/2), Y: float64(one.FreeBytes) * 1e6 / float64(size)})
		}
		before += vdev[len(vdev)-1].Offset + size
	}
	return points, breaks
}

// pieces shows how much of the free space is in pieces of each size. A piece counts as 1.5 times its power of two, because its size is
// between that power and the next one.
func (m *metaslabs) pieces(lines []line) (chart svg.Chart, any bool) {
	title := "Sizes of free pieces: " + about(lines)
	chart = svg.Chart{ID: slug(title), Title: title, Description: "Parts of the free space by the size of the pieces that it is in.",
		X: svg.Axis{Label: "size of the piece, from"}, Y: svg.Axis{Label: "part of the free space", Unit: svg.PartsPerMillion, FromZero: true}}
	var powers []int
	for _, of := range lines {
		for power, count := range m.maps[of].FreeSegments {
			if count > 0 && power >= 0 && power < 62 && !slices.Contains(powers, power) {
				powers = append(powers, power)
			}
		}
	}
	slices.Sort(powers)
	for i, power := range powers {
		chart.X.Ticks = append(chart.X.Ticks, svg.Tick{Value: float64(i), Words: svg.Bytes.Format(float64(int64(1) << power))})
	}
	for place, of := range lines {
		var points []svg.Point
		var all float64
		for i, power := range powers {
			bytes := float64(m.maps[of].FreeSegments[power]) * 1.5 * float64(int64(1)<<power)
			if all += bytes; bytes > 0 {
				points = append(points, svg.Point{X: float64(i), Y: bytes})
			}
		}
		for i := range points {
			points[i].Y *= 1e6 / all
		}
		chart.Marks = append(chart.Marks, svg.Bars{Name: label(of, lines), Series: place, Of: len(lines), Place: place, Points: points})
	}
	return chart, len(powers) > 0
}
