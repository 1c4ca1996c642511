package imports

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// fioCommand matches a line that runs fio with options, perhaps after a prompt.
var fioCommand = regexp.MustCompile(`(?m)^[ \t]*(?:\$[ \t]+)?(?:sudo[ \t]+)?(?:[\w./-]*/)?fio[ \t]+(-[^\n]*)$`)

// redirection matches the number before a redirection, as in 2>&1, which is no word of the command.
var redirection = regexp.MustCompile(`[ \t][0-9]+>`)

// fioCommandsOf returns the arguments of each fio command of a script.
func fioCommandsOf(text string) (commands []string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	for _, match := range fioCommand.FindAllStringSubmatch(text, -1) {
		commands = append(commands, redirection.ReplaceAllString(match[1], " >"))
	}
	return commands
}

func isCommandLine(text string) bool { return len(fioCommandsOf(text)) > 0 }

// readCommandLine imports a script with one fio command.
func readCommandLine(f file) (*Benchmark, error) {
	words, err := onlyCommand(fioCommandsOf(f.text))
	if err != nil {
		return nil, err
	}
	b := &Benchmark{}
	jobs, err := jobFileOf(words, b)
	if err != nil {
		return nil, err
	}
	return b, b.takeJobs(jobs)
}

// withoutValue are fio's options that take no value: fio would read the next word as the path of a job file.
var withoutValue = words(`append-terse bandwidth-log exitall exitall_on_error fixedbufs group_reporting hipri minimal new_group norandommap
	readonly refill_buffers registerfiles sqthread_poll stonewall thread time_based wait_for_previous warnings-fatal zero_buffers`)

// ofProgram are options of the program, not of a job, that do not decide what is measured.
var ofProgram = words(`alloc-size append-terse eta-newline max-jobs readonly terse-version warnings-fatal`)

// jobFileOf writes the options of a fio command as a job file: each --name begins a section, and what comes before the first is for all.
func jobFileOf(words []string, b *Benchmark) (string, error) {
	jobs, named := strings.Builder{}, false
	jobs.WriteString("[global]\n")
	for len(words) > 0 {
		option := strings.TrimPrefix(strings.TrimPrefix(words[0], "-"), "-")
		if option == words[0] {
			return "", fmt.Errorf("fio would read %.80q as the path of a job file: give that file, or remove it", option)
		}
		words = words[1:]
		name, value, given := strings.Cut(option, "=")
		if !given && !withoutValue[name] && len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			value, words = words[0], words[1:]
		}
		switch {
		case strings.ContainsAny(name+value, ";#\n") || strings.HasPrefix(name, "[") || name == "":
			return "", fmt.Errorf("--%.80s cannot be written in a job file", option)
		case name == "name" && value == "":
			return "", errors.New("--name has no value")
		case name == "name":
			named = true
			fmt.Fprintf(&jobs, "[%s]\n", notInSections.ReplaceAllString(value, "-"))
		case ofProgram[name]:
			b.leave("%s: a runner does not accept it", name)
		case value != "":
			fmt.Fprintf(&jobs, "%s=%s\n", name, value)
		default:
			jobs.WriteString(name + "\n")
		}
	}
	if !named {
		return "", errors.New("it has no job: write --name=NAME before the options of each job")
	}
	return jobs.String(), nil
}
