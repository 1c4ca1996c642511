package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// superuser creates the cluster and queries the server; owner owns the database and runs the scripts.
	superuser = "postgres"
	owner     = "bench"
	database  = "bench"

	initdbPatience = 15 * time.Minute
	unknownUser    = "could not look up effective user ID"
)

// wrapperLibraries are where distributions put libnss_wrapper (68 KiB), which lets initdb run as a user without a name.
var wrapperLibraries = []string{"/usr/lib/*/libnss_wrapper.so", "/usr/lib64/libnss_wrapper.so", "/usr/lib/libnss_wrapper.so",
	"/usr/local/lib/libnss_wrapper.so"}

// createCluster runs initdb, which also syncs its files: otherwise dirty pages would be written back during the measurement.
func (s *session) createCluster(ctx context.Context) error {
	s.progress.say("initdb")
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, initdbPatience, fmt.Errorf("initdb did not end within %v", initdbPatience))
	defer cancel()
	arguments := initdbArguments(s.programs, s.data, s.options)
	environment := minimalEnvironment(s.scratch)
	_, err := run(ctx, spec{argv: arguments, environment: environment})
	if err != nil && saysUnknownUser(err) {
		if environment, err = s.nameUser(environment); err == nil {
			_, err = run(ctx, spec{argv: arguments, environment: environment})
		}
	}
	if err != nil {
		return s.explain("make a PostgreSQL cluster in "+s.options.Folder, err)
	}
	s.details.InitdbNanoseconds = time.Since(began).Nanoseconds()
	return s.configure()
}

func initdbArguments(programs programs, data string, options Options) []string {
	arguments := []string{programs.path("initdb"), "--pgdata", data, "--username", superuser, "--auth", "trust", "--encoding", "UTF8",
		"--locale", "C"}
	if options.WALFolder != "" {
		arguments = append(arguments, "--waldir", filepath.Join(options.WALFolder, walName))
	}
	switch {
	case options.DataChecksums:
		arguments = append(arguments, "--data-checksums")
	case programs.major >= 18: // where they are the default
		arguments = append(arguments, "--no-data-checksums")
	}
	return arguments
}

func saysUnknownUser(err error) bool {
	var failed *commandError
	return errors.As(err, &failed) && strings.Contains(strings.Join(failed.lines, "\n"), unknownUser)
}

// nameUser gives the user of this process a name, which initdb requires. The server does not.
func (s *session) nameUser(environment []string) ([]string, error) {
	for _, pattern := range wrapperLibraries {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			continue
		}
		users, groups := filepath.Join(s.scratch, "passwd"), filepath.Join(s.scratch, "group")
		user := fmt.Sprintf("%s:x:%d:%d::%s:/bin/false\n", superuser, os.Geteuid(), os.Getegid(), s.scratch)
		group := fmt.Sprintf("%s:x:%d:\n", superuser, os.Getegid())
		if err := errors.Join(os.WriteFile(users, []byte(user), 0o600), os.WriteFile(groups, []byte(group), 0o600)); err != nil {
			return nil, fmt.Errorf("name the user for initdb: %w", err)
		}
		return append(slices.Clone(environment), "LD_PRELOAD="+found[0], "NSS_WRAPPER_PASSWD="+users, "NSS_WRAPPER_GROUP="+groups), nil
	}
	return nil,
		fmt.Errorf("initdb needs a name for user %d, and /etc/passwd of the image has none: use the default runAsUser, or an image with "+
			"libnss_wrapper",
			os.Geteuid())
}

// configure appends to postgresql.conf: the last line for a setting counts.
func (s *session) configure() error {
	path := filepath.Join(s.data, "postgresql.conf")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	_, err = file.WriteString(configuration(s.options, s.scratch))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return s.explain("configure PostgreSQL", err)
	}
	return nil
}

// takeCluster gives the cluster of an earlier run the settings of this one, and removes settings that were made with ALTER SYSTEM.
func (s *session) takeCluster(context.Context) error {
	const most = 1 << 20 // the file that initdb writes has 30 KiB
	root, err := os.OpenRoot(s.data)
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("postgresql.conf"); err != nil || info.Size() > most {
		return errors.Join(errors.New("configure PostgreSQL: postgresql.conf is not that of an earlier phase"), err)
	}
	text, err := root.ReadFile("postgresql.conf")
	if err != nil {
		return fmt.Errorf("configure PostgreSQL: %w", err)
	}
	before, _, ours := strings.Cut(string(text), configurationMark)
	if !ours {
		return errors.New("configure PostgreSQL: postgresql.conf is not that of an earlier phase")
	}
	err = errors.Join(root.WriteFile("postgresql.conf", []byte(before), 0o600), root.WriteFile("postgresql.auto.conf", nil, 0o600))
	if err != nil {
		return s.explain("configure PostgreSQL", err)
	}
	return s.configure()
}

// configurationMark marks the beginning of the settings that configure appends.
const configurationMark = "\n# by storagebench\n"

func configuration(options Options, socket string) string {
	settings := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": socket,
		"unix_socket_permissions": "0700",
		"port":                    "5432",
		"max_connections":         fmt.Sprint(options.Clients + 10),
		"fsync":                   "on",
		"restart_after_crash":     "off", // a crash ends the phase; a server that comes back would hide it
		"log_destination":         "stderr",
		"logging_collector":       "off",
		"log_checkpoints":         "on", // the server counts complete checkpoints only from version 18 on
		"log_line_prefix":         "%m [%p] ",
		"log_min_error_statement": "panic",
		"log_timezone":            "UTC",
		"timezone":                "UTC",
	}
	if options.Settings["wal_level"] == "minimal" {
		settings["max_wal_senders"] = "0" // otherwise the server refuses to start
	}
	maps.Copy(settings, options.Settings)
	var text strings.Builder
	text.WriteString(configurationMark)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.NewReplacer("'", "''", `\`, `\\`).Replace(settings[name]))
	}
	return text.String()
}
