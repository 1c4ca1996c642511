package svg

import "strings"

// widths are the widths of letters in pixels, at size 12 in the widest common fonts (DejaVu Sans, Verdana). The reader's font is unknown,
// and underestimated words would run into others.
var widths = []struct {
	letters string
	pixels  float64
}{
	{"ijlI.,:;'| !J\u00a0", 4.2}, {"frt()[]{}-/\\\"*°", 5.6}, {"ABCDEFGHKLNOPQRSTUVXYZ", 9.5}, {"mwMW%@=+<>~×…&µ", 12},
}

const (
	// usual is the width of a digit and of most other letters.
	usual = 7.7
	// square is the width of letters that fill a square. Emoji are a little wider.
	square     = 13
	firstWide  = 0x1100
	firstImage = 0x1f000
)

func widthOf(letter rune) float64 {
	for _, of := range widths {
		if strings.ContainsRune(of.letters, letter) {
			return of.pixels
		}
	}
	switch {
	case letter >= firstImage:
		return square + 4
	case letter >= firstWide:
		return square
	}
	return usual
}

func width(words string) (pixels float64) {
	for _, letter := range words {
		pixels += widthOf(letter)
	}
	return pixels
}

// fit cuts words to the available pixels.
func fit(words string, pixels float64) string {
	words = Clean(words, maxTitle)
	if width(words) <= pixels {
		return words
	}
	room := pixels - widthOf('…')
	for i, letter := range words {
		if room -= widthOf(letter); room < 0 {
			return strings.TrimRight(words[:i], " ") + "…"
		}
	}
	return words
}
