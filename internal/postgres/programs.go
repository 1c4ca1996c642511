package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shell runs the server for initdb, and holds pgbench back until its logs are ready.
const shell = "/bin/sh"

var (
	programNames = []string{"initdb", "postgres", "pgbench", "psql"}
	// installFolders are where distributions put PostgreSQL; * is the major version.
	installFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/local/bin"}
	versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d{1,4})(?:\.\d+|devel|beta\d+|rc\d+)?(?: .*)?)$`)
)

// programs are the programs of one PostgreSQL installation.
type programs struct {
	folder  string
	version string // such as 15.18 (Debian 15.18-0+deb12u1)
	major   int
}

func (p programs) path(name string) string { return filepath.Join(p.folder, name) }

// findPrograms takes the first folder of PATH that has all programs. Otherwise it takes the newest complete installation in the first of
// the installFolders that has one. On Debian, PATH has only wrappers of some of the programs, which are Perl scripts.
func findPrograms(ctx context.Context) (programs, error) {
	folder, err := programFolder(filepath.SplitList(os.Getenv("PATH")), installFolders)
	if err != nil {
		return programs{}, err
	}
	if !executable(shell) {
		return programs{}, fmt.Errorf("%s is missing, which initdb needs: use the postgres image of the same release", shell)
	}
	found := programs{folder: folder}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	output, err := run(ctx, spec{argv: []string{found.path("postgres"), "--version"}, environment: minimalEnvironment("")})
	if err != nil {
		return programs{}, fmt.Errorf("ask PostgreSQL in %s for its version: %w", folder, err)
	}
	if found.version, found.major, err = parseVersion(output); err != nil {
		return programs{}, err
	}
	if found.major < 13 {
		return programs{}, fmt.Errorf("PostgreSQL in %s is %s: install version 13 or newer", folder, found.version)
	}
	return found, nil
}

func programFolder(path, patterns []string) (string, error) {
	for _, folder := range path {
		if filepath.IsAbs(folder) && complete(folder) {
			return folder, nil
		}
	}
	for _, pattern := range patterns {
		folders, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.SortFunc(folders, func(a, b string) int { return folderVersion(b) - folderVersion(a) })
		for _, folder := range folders {
			if complete(folder) {
				return folder, nil
			}
		}
	}
	return "", fmt.Errorf("no folder of PATH (%s) and none of %s has all of %s: use the postgres image, or install PostgreSQL with pgbench",
		strings.Join(path, ":"), strings.Join(patterns, ", "), strings.Join(programNames, ", "))
}

func complete(folder string) bool {
	return !slices.ContainsFunc(programNames, func(name string) bool { return !executable(filepath.Join(folder, name)) })
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// folderVersion is the last number in the path of an installation.
func folderVersion(folder string) int {
	digits := regexp.MustCompile(`\d{1,6}`).FindAllString(folder, -1)
	if len(digits) == 0 {
		return 0
	}
	version, err := strconv.Atoi(digits[len(digits)-1])
	if err != nil {
		return 0
	}
	return version
}

// parseVersion reads the output of postgres --version.
func parseVersion(output string) (version string, major int, err error) {
	match := versionPattern.FindStringSubmatch(strings.TrimSpace(output))
	if match == nil {
		return "", 0, fmt.Errorf("%.100q is not a PostgreSQL version: install PostgreSQL", output)
	}
	if major, err = strconv.Atoi(match[2]); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(match[1]), major, nil
}

// minimalEnvironment leaves out the variables of the caller except LD_LIBRARY_PATH, above all those that redirect PostgreSQL's programs.
func minimalEnvironment(home string) []string {
	environment := []string{"LC_ALL=C", "TZ=UTC", "PATH=/usr/local/bin:/usr/bin:/bin", "PGCONNECT_TIMEOUT=60"}
	if home != "" {
		environment = append(environment, "HOME="+home)
	}
	if libraries := os.Getenv("LD_LIBRARY_PATH"); libraries != "" {
		environment = append(environment, "LD_LIBRARY_PATH="+libraries)
	}
	return environment
}
