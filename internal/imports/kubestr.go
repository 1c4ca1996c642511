package imports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

var kubestrCommand = regexp.MustCompile(`(?m)^[^#\n]*\bkubestr(?:\.exe)?[ \t]+(fio\b[^\n]*)$`)

// commandsOf returns the arguments of each kubestr command of a script whose first argument is fio.
func commandsOf(text string) (commands []string) {
	for _, match := range kubestrCommand.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
		commands = append(commands, match[1])
	}
	return commands
}

func isKubestr(text string) bool { return len(commandsOf(text)) > 0 }

// onlyCommand returns the words of the arguments of a command, if it is the only one of a script.
func onlyCommand(commands []string) ([]string, error) {
	if len(commands) > 1 {
		return nil, fmt.Errorf("it has %d commands: write one of them into a file of its own", len(commands))
	}
	return shellWords(commands[0])
}

// readKubestr imports a script with one kubestr fio command. It knows the flags of that command.
func readKubestr(f file) (*Benchmark, error) {
	words, err := onlyCommand(commandsOf(f.text))
	if err != nil {
		return nil, err
	}
	b := &Benchmark{}
	flags := pflag.NewFlagSet("kubestr fio", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	class := flags.StringP("storageclass", "s", "", "")
	size := flags.StringP("size", "z", "100Gi", "")
	namespace := flags.StringP("namespace", "n", "", "")
	selector := flags.StringToStringP("nodeselector", "N", nil, "")
	path := flags.StringP("fiofile", "f", "", "")
	test := flags.StringP("testname", "t", "", "")
	image := flags.StringP("image", "i", "", "")
	flags.StringP("output", "o", "", "")
	flags.StringP("outfile", "e", "", "")
	if err := flags.Parse(words[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		b.leave("%s: kubestr fio takes no arguments", strings.Join(flags.Args(), " "))
	}
	b.Class, b.Size, b.NodeSelector = *class, *size, *selector
	if *namespace != "" {
		b.leave("--namespace %s: use it with the command that runs the benchmark", *namespace)
	}
	if *image != "" {
		b.leave("--image %s: the runner has its own fio", *image)
	}
	switch {
	case *path != "":
		b.Name = "kubestr-" + *path
		job, err := f.open(*path)
		if err != nil {
			if ofPath, is := errors.AsType[*fs.PathError](err); is { // it names a system call, which explains nothing
				err = ofPath.Err
			}
			return nil, fmt.Errorf("read the job file %.80q that it names: %w", *path, err)
		}
		if len(job) > MaxBytes {
			return nil, errors.New("the job file that it names is too large")
		}
		return b, b.takeJobs(string(job))
	case *test != "" && *test != "default-fio":
		return nil, fmt.Errorf("it names the test %.40q: only default-fio is known, so write its job file and --fiofile", *test)
	}
	b.Name = "kubestr"
	return b, b.setLoads("2G", options("direct=1", "size=2g", "ramp_time=2s", "runtime=15s"), []load{
		{name: "read_iops", mode: "randread", block: "4k", depth: 64, own: true, beside: true},
		{name: "write_iops", mode: "randwrite", block: "4k", depth: 64, own: true, beside: true},
		{name: "read_bw", mode: "randread", block: "128k", depth: 64, own: true, beside: true},
		{name: "write_bw", mode: "randwrite", block: "128k", depth: 64, own: true, beside: true},
	})
}

// shellWords splits a command into words like a shell. It refuses text that only a shell can replace, such as variables.
func shellWords(command string) (words []string, err error) {
	word, inWord := strings.Builder{}, false
	quote := rune(0)
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	for _, letter := range command {
		switch {
		case quote != '\'' && strings.ContainsRune("$`", letter):
			return nil, fmt.Errorf("%.80q uses what only a shell expands: write the value itself", command)
		case quote != 0 && letter == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(letter)
		case letter == '\'' || letter == '"':
			quote, inWord = letter, true
		case strings.ContainsRune(" \t\r", letter):
			end()
		case strings.ContainsRune("|;&>#", letter): // the rest does not belong to this command
			end()
			return words, nil
		default:
			word.WriteRune(letter)
			inWord = true
		}
	}
	end()
	if quote != 0 {
		return nil, fmt.Errorf("%.80q has a quote without an end", command)
	}
	return words, nil
}
