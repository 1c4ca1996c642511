package slowdisk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Constants of the NBD protocol, as far as QEMU uses it: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
const (
	magicServer  = 0x4e42444d41474943 // NBDMAGIC
	magicOption  = 0x49484156454F5054 // IHAVEOPT
	magicAnswer  = 0x3e889045565a9
	magicRequest = 0x25609513
	magicReply   = 0x67446698

	flagFixedNewStyle, flagNoZeroes = 1, 2

	optionExportName, optionAbort, optionInfo, optionGo = 1, 2, 6, 7

	answerAcknowledged, answerInfo, answerUnsupported = 1, 3, 1<<31 + 1
	infoExport                                        = 0

	// The disk has flags, and takes flush, trim and write zeroes.
	transmissionFlags = 1 | 4 | 32 | 64

	maxOptionBytes  = 4096
	maxRequestBytes = 32 << 20
)

// The kinds of requests.
const (
	kindRead = iota
	kindWrite
	kindDisconnect
	kindFlush
	kindTrim
	_ // cache, which is not offered
	kindZeroes
)

// negotiate agrees on the only export. It returns false if the client ends the connection.
func negotiate(connection io.ReadWriter, size int64) (goesOn bool, err error) {
	if err := send(connection, uint64(magicServer), uint64(magicOption), uint16(flagFixedNewStyle|flagNoZeroes)); err != nil {
		return false, err
	}
	var clientFlags uint32
	if err := receive(connection, &clientFlags); err != nil {
		return false, err
	}
	for {
		var option struct {
			Magic        uint64
			Kind, Length uint32
		}
		if err := receive(connection, &option); err != nil {
			return false, err
		}
		if option.Magic != magicOption || option.Length > maxOptionBytes {
			return false, fmt.Errorf("an option with magic %#x and %d bytes", option.Magic, option.Length)
		}
		if _, err := io.CopyN(io.Discard, connection, int64(option.Length)); err != nil { // there is one export, whatever its name
			return false, err
		}
		answer := func(kind uint32, content []byte) error {
			return send(connection, uint64(magicAnswer), option.Kind, kind, uint32(len(content)), content)
		}
		switch option.Kind {
		case optionExportName:
			zeroes := make([]byte, 124)
			if clientFlags&flagNoZeroes != 0 {
				zeroes = nil
			}
			return true, send(connection, uint64(size), uint16(transmissionFlags), zeroes)
		case optionAbort:
			return false, answer(answerAcknowledged, nil)
		case optionInfo, optionGo:
			var export bytes.Buffer
			if err := send(&export, uint16(infoExport), uint64(size), uint16(transmissionFlags)); err != nil {
				return false, err
			}
			if err := answer(answerInfo, export.Bytes()); err != nil {
				return false, err
			}
			if err := answer(answerAcknowledged, nil); err != nil || option.Kind == optionGo {
				return true, err
			}
		default:
			if err := answer(answerUnsupported, nil); err != nil {
				return false, err
			}
		}
	}
}

// request is one request to the disk.
type request struct {
	kind           uint16
	cookie         uint64
	offset, length int64
	data           []byte
}

// readRequest reads the next request, with its data.
func readRequest(connection io.Reader, size int64) (request, error) {
	var header struct {
		Magic          uint32
		Flags, Kind    uint16
		Cookie, Offset uint64
		Length         uint32
	}
	if err := receive(connection, &header); err != nil {
		return request{}, err
	}
	asked := request{kind: header.Kind, cookie: header.Cookie, offset: int64(header.Offset), length: int64(header.Length)}
	if header.Magic != magicRequest {
		return asked, fmt.Errorf("a request with magic %#x", header.Magic)
	}
	if asked.offset < 0 || asked.offset > size || asked.length > size-asked.offset {
		return asked, fmt.Errorf("a request for %d bytes at %d, outside of the disk of %d", asked.length, header.Offset, size)
	}
	if (asked.kind == kindRead || asked.kind == kindWrite) && asked.length > maxRequestBytes {
		return asked, fmt.Errorf("a request for %d bytes at once", asked.length)
	}
	if asked.kind == kindWrite {
		asked.data = make([]byte, asked.length)
		_, err := io.ReadFull(connection, asked.data)
		return asked, err
	}
	return asked, nil
}

func reply(connection io.Writer, asked request, data []byte, code uint32) error {
	return send(connection, uint32(magicReply), code, asked.cookie, data)
}

// send writes values in the order of the network, in one write.
func send(to io.Writer, values ...any) error {
	var message bytes.Buffer
	for _, value := range values {
		if err := binary.Write(&message, binary.BigEndian, value); err != nil {
			return err
		}
	}
	_, err := to.Write(message.Bytes())
	return err
}

func receive(from io.Reader, value any) error { return binary.Read(from, binary.BigEndian, value) }
