package postgres

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func valid() Options {
	return Options{Folder: "/data/postgres", Scratch: "/tmp", Mode: TPCBLike, DatabaseBytes: 1 << 30, Clients: 8, Duration: 5 * time.Minute}
}

func TestRefusedOptions(t *testing.T) {
	script := func(text string) func(*Options) {
		return func(o *Options) { o.Mode, o.Script = Script, []byte(text) }
	}
	setting := func(name, value string) func(*Options) {
		return func(o *Options) { o.Settings = map[string]string{name: value} }
	}
	for want, change := range map[string]func(*Options){
		"":                                  func(*Options) {},
		`the folder "data" is not absolute`: func(o *Options) { o.Folder = "data" },
		`the folder "wal" for the write-ahead log`:                  func(o *Options) { o.WALFolder = "wal" },
		`the folder "/data/postgres/" for the write-ahead log`:      func(o *Options) { o.WALFolder = o.Folder + "/" },
		"there is no scratch folder":                                func(o *Options) { o.Scratch = "" },
		"0 clients are not possible":                                func(o *Options) { o.Clients = 0 },
		"513 clients are not possible":                              func(o *Options) { o.Clients = 513 },
		"the duration 0s is not possible":                           func(o *Options) { o.Duration = 0 },
		"the ramp-up -1s is not possible":                           func(o *Options) { o.RampUp = -time.Second },
		"a database of 0 bytes":                                     func(o *Options) { o.DatabaseBytes = 0 },
		"a database of 9223372036854775807":                         func(o *Options) { o.DatabaseBytes = 1<<63 - 1 },
		`mode "Fast" is unknown`:                                    func(o *Options) { o.Mode = "Fast" },
		"mode TPCBLike has its own":                                 func(o *Options) { o.Script = []byte("SELECT 1") },
		"the script is empty":                                       script(" \n"),
		"the script has 1048577 bytes":                              script(strings.Repeat("-", 1<<20+1)),
		"the script contains a zero byte":                           script("SELECT 1\x00"),
		"line 2 of the script calls a shell":                        script("SELECT 1;\n\\setshell a echo 1\n"),
		"line 1 of the script calls a shell":                        script("SELECT 1 \\\\\n ShElL touch x\n"),
		`the setting "fsync" is not allowed`:                        setting("fsync", "off"),
		`the setting wal_level has the value "minimal'\nfsync=off"`: setting("wal_level", "minimal'\nfsync=off"),
		`the setting wal_level has the value ""`:                    setting("wal_level", ""),
	} {
		options := valid()
		change(&options)
		err := options.check()
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), `\n`, "\n"), strings.ReplaceAll(want, `\n`, "\n"))) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// FuzzScript: a script that passes contains no shell command that pgbench's lexer would find.
func FuzzScript(f *testing.F) {
	f.Add([]byte("\\set a 1\nSELECT :a;\n"))
	f.Add([]byte("SELECT 1 \\ \\\r\n  shell x"))
	f.Fuzz(func(t *testing.T, script []byte) {
		options := valid()
		options.Mode, options.Script = Script, script
		if options.checkScript() != nil {
			return
		}
		flat := strings.NewReplacer("\\\r\n", "", "\\\n", "", " ", "", "\t", "").Replace(strings.ToLower(string(script)))
		if strings.Contains(flat, `\shell`) || strings.Contains(flat, `\setshell`) {
			t.Errorf("%q passes", script)
		}
	})
}

// TestSettingsAreThoseOfTheAPI compares settingNames with the rule in the API.
func TestSettingsAreThoseOfTheAPI(t *testing.T) {
	source, err := os.ReadFile("../../api/v1alpha1/workload_types.go")
	if err != nil {
		t.Fatal(err)
	}
	if rule := "k in ['" + strings.Join(settingNames, "','") + "']"; !strings.Contains(string(source), rule) {
		t.Errorf("the API has no %s", rule)
	}
}

func TestScale(t *testing.T) {
	for asked, want := range map[int64]int64{1: 1, bytesPerScale: 1, bytesPerScale + 1: 2, 1 << 30: 69, 100 << 30: 6848} {
		if got := (Options{DatabaseBytes: asked}).scale(); got != want {
			t.Errorf("%d bytes: scale %d instead of %d", asked, got, want)
		}
	}
}

func TestWholeSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Second: 1, 1500 * time.Millisecond: 2} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("%v: %d", d, got)
		}
	}
}

func TestConfiguration(t *testing.T) {
	options := valid()
	options.Settings = map[string]string{"wal_level": "minimal", "shared_buffers": "1GB"}
	text := configuration(options, "/run/it's")
	for _, line := range []string{"listen_addresses = ''", "unix_socket_directories = '/run/it''s'", "max_connections = '18'",
		"shared_buffers = '1GB'", "max_wal_senders = '0'", "restart_after_crash = 'off'", "fsync = 'on'"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
}

func TestInitdbArguments(t *testing.T) {
	for _, test := range []struct {
		major     int
		checksums bool
		want      string
	}{
		{15, true, "--data-checksums"}, {15, false, "C"}, {18, true, "--data-checksums"}, {18, false, "--no-data-checksums"},
	} {
		arguments := initdbArguments(programs{major: test.major}, "/data", Options{DataChecksums: test.checksums})
		if last := arguments[len(arguments)-1]; last != test.want {
			t.Errorf("version %d, checksums %v: %s", test.major, test.checksums, last)
		}
		if slices.Contains(arguments, "--waldir") {
			t.Errorf("the log is elsewhere: %q", arguments)
		}
	}
	apart := initdbArguments(programs{major: 17}, "/data", Options{DataChecksums: true, WALFolder: "/wal"})
	if at := slices.Index(apart, "--waldir"); at < 0 || apart[at+1] != "/wal/pgwal" {
		t.Errorf("the log is not where it should be: %q", apart)
	}
}
