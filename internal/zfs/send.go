package zfs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/storagebench/storagebench/internal/spelling"
)

// replicateTimeout bounds a replication whose caller sets no shorter deadline.
const replicateTimeout = 7 * 24 * time.Hour

// SendOptions describe a send.
type SendOptions struct {
	// Snapshot to send. Not with Token.
	Snapshot string
	// From is an earlier snapshot of the same dataset, for an incremental send.
	From string
	// Compressed sends blocks as they are on disk.
	Compressed bool
	// Token resumes an interrupted receive; see ResumeToken.
	Token string
	// BreakAfter breaks the stream off after this many bytes, as if the sender had died. 0 means never.
	BreakAfter int64
}

// ErrBrokenOff says that BreakAfter ended the stream: everything before that was received.
var ErrBrokenOff = errors.New("the stream was broken off as requested")

func (o SendOptions) arguments() ([]string, error) {
	if o.Token != "" {
		if o.Snapshot != "" || o.From != "" {
			return nil, invalid("a send of %q with a resume token: the token says what to send, leave the snapshots out", o.Snapshot)
		}
		// The token also says how: compressed or not.
		if len(o.Token) > 16<<10 || !tokenPattern.MatchString(o.Token) {
			return nil, invalid("resume token %q: write the value of receive_resume_token", spelling.Shorten(o.Token, maxShown))
		}
		return []string{"-t", o.Token}, nil
	}
	if err := checkSnapshot(o.Snapshot); err != nil {
		return nil, err
	}
	var args []string
	if o.Compressed {
		args = append(args, "-c")
	}
	if o.From != "" {
		if err := checkSnapshot(o.From); err != nil {
			return nil, err
		}
		args = append(args, "-i", o.From)
	}
	return append(args, o.Snapshot), nil
}

// SendSize returns how many bytes a send will have or, for a resumed one, how many are left.
func (c *Client) SendSize(ctx context.Context, options SendOptions) (int64, error) {
	args, err := options.arguments()
	if err != nil {
		return 0, err
	}
	command := zfs(append([]string{"send", "-n", "-v", "-P"}, args...)...)
	output, err := c.run.Run(ctx, command)
	if err != nil {
		return 0, err
	}
	return parseSendSize(command.String(), string(output))
}

func parseSendSize(command, output string) (int64, error) {
	for line := range strings.Lines(output) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "size\t"); found {
			size, err := strconv.ParseInt(text, 10, 64)
			if err != nil || size < 0 {
				return 0, malformed(command, "a size in bytes", line)
			}
			return size, nil
		}
	}
	return 0, malformed(command, "a line 'size'", output)
}

// Replicate sends to a dataset of the same node and counts the bytes as they pass. The received dataset is not mounted. If it is
// interrupted, the ResumeToken of the dataset says how to continue; nothing received is lost.
func (c *Client) Replicate(ctx context.Context, options SendOptions, to string, properties map[string]string, sent *atomic.Int64) error {
	from, err := options.arguments()
	into, settingsErr := propertyOptions("-o", properties)
	if err := cmp.Or(err, checkDataset(to), settingsErr); err != nil {
		return err
	}
	if !strings.Contains(to, "/") {
		return invalid("receiving into %q, the root of a pool: name a dataset below it", to)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	send := zfs(append([]string{"send"}, from...)...)
	passing := &counter{to: writer, count: sent, left: options.BreakAfter, breaks: options.BreakAfter > 0}
	send.Stdout, send.Timeout = passing, replicateTimeout
	receive := zfs(append(append([]string{"receive", "-s", "-u"}, into...), to)...)
	receive.Stdin, receive.Timeout = reader, replicateTimeout

	var sending, receiving error
	var both sync.WaitGroup
	both.Go(func() {
		sending = c.do(ctx, send)
		// The failure of a sender must not look like the regular end of a stream.
		writer.CloseWithError(sending)
	})
	both.Go(func() {
		receiving = c.do(ctx, receive)
		reader.CloseWithError(errReceiverGone)
		if receiving != nil {
			cancel()
		}
	})
	both.Wait()
	if passing.broken.Load() && errors.Is(receiving, BadStream) {
		return ErrBrokenOff
	}
	return replicationError(sending, receiving)
}

var errReceiverGone = errors.New("the receiver has ended")

// replicationError returns the error of the side that failed first: the other side only reports a broken pipe or stream.
func replicationError(sending, receiving error) error {
	if sending != nil && (receiving == nil || errors.Is(receiving, BadStream) || errors.Is(receiving, Unknown)) {
		if !errors.Is(sending, Cancelled) && !errors.Is(sending, Unknown) {
			return sending
		}
	}
	if receiving != nil {
		return receiving
	}
	return sending
}

// ResumeToken returns the token that an interrupted receive left behind; it is empty if there is nothing to resume.
func (c *Client) ResumeToken(ctx context.Context, dataset string) (string, error) {
	properties, err := c.DatasetProperties(ctx, []string{"receive_resume_token"}, dataset)
	if err != nil {
		return "", err
	}
	token, _ := find(properties, dataset, "receive_resume_token")
	return unset(token.Value), nil
}

// Resumed is the send that a resume token continues.
type Resumed struct {
	// Snapshot is the name of the snapshot at the sender. It may be on another machine, or gone.
	Snapshot string
	// GUID of that snapshot, as Datasets prints it. The received snapshot has the same GUID.
	GUID string
	// Bytes of the stream that were received. 0 if the token does not say.
	Bytes int64
}

// Resumed reads a resume token. ZFS prints the contents of the token before it looks for the snapshot, so the snapshot need not exist here.
func (c *Client) Resumed(ctx context.Context, token string) (Resumed, error) {
	args, err := SendOptions{Token: token}.arguments()
	if err != nil {
		return Resumed{}, err
	}
	printed := &boundedBuffer{limit: outputLimit}
	command := zfs(append([]string{"send", "-n", "-v", "-P"}, args...)...)
	command.Stdout = printed
	failure := c.do(ctx, command)
	resumed, err := parseResumed(command.String(), printed.String())
	if err != nil && failure != nil {
		return Resumed{}, failure
	}
	return resumed, err
}

func parseResumed(command, output string) (Resumed, error) {
	var resumed Resumed
	for line := range strings.Lines(output) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		switch name {
		case "toname":
			resumed.Snapshot = value
		case "toguid":
			guid, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return Resumed{}, malformed(command, "a number as toguid", line)
			}
			resumed.GUID = strconv.FormatUint(guid, 10)
		case "bytes":
			bytes, err := strconv.ParseInt(value, 0, 64)
			if err != nil || bytes < 0 {
				return Resumed{}, malformed(command, "a number as bytes", line)
			}
			resumed.Bytes = bytes
		}
	}
	if resumed.Snapshot == "" || resumed.GUID == "" {
		return Resumed{}, malformed(command, "toname and toguid of the token", output)
	}
	return resumed, nil
}

// AbortReceive discards the partial data of an interrupted receive.
func (c *Client) AbortReceive(ctx context.Context, dataset string) error {
	if err := checkDataset(dataset); err != nil {
		return err
	}
	return c.do(ctx, zfs("receive", "-A", dataset))
}

// counter counts the bytes that pass. If breaks is set, at most left bytes pass.
type counter struct {
	to     io.Writer
	count  *atomic.Int64
	left   int64
	breaks bool
	broken atomic.Bool
}

// Write passes data on.
func (c *counter) Write(data []byte) (int, error) {
	breaks := c.breaks && int64(len(data)) > c.left
	if breaks {
		data = data[:c.left]
		c.broken.Store(true)
	}
	written, err := c.to.Write(data)
	c.left -= int64(written)
	if breaks && err == nil {
		err = ErrBrokenOff
	}
	if c.count != nil {
		c.count.Add(int64(written))
	}
	return written, err
}
