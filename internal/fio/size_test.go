package fio

import "testing"

// TestLaidOut: the space of files that fio writes before the jobs begin, as far as it is known.
func TestLaidOut(t *testing.T) {
	const gib = 1 << 30
	for text, want := range map[string]int64{
		"[a]\nrw=randread\nsize=5g": 5 * gib,
		"[a]\nsize=5g":              5 * gib, // fio reads
		"[global]\nsize=1g\nrw=randrw:8\n[a]\nnumjobs=4\n[b]\nsize=2GB": 6 * gib,
		"[a]\nreadwrite=rw\nsize=1048576":                               1 << 20,
		"[a]\nrw=write\nsize=5g":                                        0, // it may end before
		"[a]\nrw=randwrite\nsize=5g\noverwrite=1":                       5 * gib,
		"[a]\nrw=read\nfilename=data\nsize=5g":                          0,
		"[a]\nrw=read\nsize=5g\nzero_buffers":                           0,
		"[a]\nrw=read\nsize=5g\nbuffer_compress_percentage=50":          0,
		"[a]\nrw=read\nsize=5g\nfile_size=1g":                           gib,
		"[a]\nrw=read\nfilesize=1g\nnrfiles=20\nnumjobs=2":              40 * gib,
		"[a]\nrw=read\nfilesize=1g-4g":                                  gib,
		"[a]\nrw=read\nsize=1g\noffset=3g":                              4 * gib,
		"[a]\nrw=read\nsize=1g\noffset_increment=1g\nnumjobs=3":         6 * gib,
		"[a]\nrw=read\nsize=50%":                                        0,
		"[a]\nrw=read\nsize=99999999p\nnumjobs=8":                       mostBytes, // more than can be counted
		"[a]\nrw=read\nsize=9p":                                         9 << 50,
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := file.LaidOut(); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

// TestMoves: jobs that end by themselves move all of their bytes, also those that are laid out first.
func TestMoves(t *testing.T) {
	const mib = 1 << 20
	for text, want := range map[string]int64{
		"[a]\nrw=write\nfilename=data":                          100 * mib,
		"[a]\nrw=write\nfilename=data\nnumjobs=2":               200 * mib,
		"[a]\nrw=write\nfilename=data\nruntime=60\ntime_based":  0,
		"[a]\nrw=write\nsize=5m":                                5 * mib,
		"[a]\nrw=read\nsize=5m":                                 10 * mib,
		"[a]\nrw=read\nsize=5m\nruntime=60":                     5 * mib,
		"[a]\nrw=write\nsize=5m\nio_size=20m\n[b]\nrw=randread": 20 * mib,
		"[a]\nrw=randread":                                      0,
		"[a]\nrw=write\nsize=99999999p\nnumjobs=8":              mostBytes,
	} {
		file, err := ParseUserFile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := file.Moves(100 * mib); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

// TestSpace: the files may take up to this much.
func TestSpace(t *testing.T) {
	const mib = 1 << 20
	for text, want := range map[string]int64{
		"size=64m": 64 * mib, "size=64m\nnrfiles=4": 64 * mib, "filesize=100m\nnrfiles=20": 2000 * mib, "filesize=1m-4m": 4 * mib, "size=64m\noffset=1g": 1088 * mib,
		"size=1m\noffset_increment=10m\nnumjobs=3": 33 * mib, "size=50%": 0, "": 0, "size=1g\nsize=50%": 0,
	} {
		file, err := ParseUserFile("[a]\nrw=read\n" + text)
		if err != nil {
			t.Fatal(err)
		}
		if got := file.Jobs()[0].Space(); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}
