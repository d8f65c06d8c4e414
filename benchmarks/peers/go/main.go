// Package main is a peer of kwire's benchmarks: franz-go's kmsg and kgo. The protocol is in peers/__init__.py.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type message interface {
	SetVersion(int16)
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// What is made is kept here, so that the compiler cannot leave it out.
var (
	kept    any
	written []byte
	sum     int64
)

var (
	decode, encode, read func() error
	decompressor         = kgo.DefaultDecompressor()
)

func pieces(file string) ([][]byte, error) {
	data, err := os.ReadFile(file)
	var found [][]byte
	for err == nil && len(data) >= 4 {
		end := 4 + binary.BigEndian.Uint32(data)
		found, data = append(found, data[4:end:end]), data[end:]
	}
	return found, err
}

func loadCodec(kind string, key, version int16, file string) error {
	bodies, err := pieces(file)
	if err != nil {
		return err
	}
	fresh := func() message {
		var one message
		if kind == "request" {
			one = kmsg.RequestForKey(key)
		} else {
			one = kmsg.ResponseForKey(key)
		}
		one.SetVersion(version)
		return one
	}
	var objects []message
	for _, body := range bodies {
		one := fresh()
		if err := one.ReadFrom(body); err != nil {
			return err
		}
		if !bytes.Equal(one.AppendTo(nil), body) {
			return errors.New("it does not write what it read")
		}
		objects = append(objects, one)
	}
	decode = func() error {
		for _, body := range bodies {
			one := fresh()
			if err := one.ReadFrom(body); err != nil {
				return err
			}
			kept = one
		}
		return nil
	}
	encode = func() error {
		for _, one := range objects {
			written = one.AppendTo(nil)
		}
		return nil
	}
	return nil
}

// All records of a set: how many there are, and what their fields add up to.
func records(data []byte) (int64, int64, error) {
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = data
	options := kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: math.MinInt64}
	made, _ := kgo.ProcessFetchPartition(options, &partition, decompressor, nil)
	total := int64(0)
	for _, one := range made.Records {
		if one.Attrs.TimestampType() >= 0 {
			total += one.Timestamp.UnixMilli()
		}
		total += one.Offset + int64(len(one.Key)+len(one.Value))
		for _, header := range one.Headers {
			total += int64(len(header.Key) + len(header.Value))
		}
	}
	return int64(len(made.Records)), total, made.Err
}

func loadRecords(file string) (int64, int64, error) {
	sets, err := pieces(file)
	count, total := int64(0), int64(0)
	read = func() error {
		count, total = 0, 0
		for _, set := range sets {
			some, adds, err := records(set)
			if err != nil {
				return err
			}
			count, total = count+some, total+adds
		}
		sum += total
		return nil
	}
	if err == nil {
		err = read()
	}
	return count, total, err
}

// CPU time of the process, in nanoseconds: getrusage is not fine enough.
func spent() int64 {
	const processClock = 2
	var now syscall.Timespec
	if _, _, code := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&now)), 0); code != 0 {
		panic(code)
	}
	return now.Nano()
}

func run(what string, passes int) (int64, error) {
	task := map[string]func() error{"decode": decode, "encode": encode, "read": read}[what]
	runtime.GC()
	began := spent()
	for range passes {
		if err := task(); err != nil {
			return 0, err
		}
	}
	return spent() - began, nil
}

func number(text string) int {
	found, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return found
}

func answer(words []string) (said string, err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("%v", wrong)
		}
	}()
	switch words[0] {
	case "codec":
		return "", loadCodec(words[1], int16(number(words[2])), int16(number(words[3])), words[4])
	case "records":
		count, total, err := loadRecords(words[1])
		return fmt.Sprintf("%d %d", count, total), err
	case "run":
		took, err := run(words[1], number(words[2]))
		return strconv.FormatInt(took, 10), err
	}
	return "", errors.New("no such command")
}

func main() {
	versions := []string{runtime.Version()}
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, one := range built.Deps {
			if strings.Contains(one.Path, "franz-go") {
				versions = append(versions, strings.TrimPrefix(one.Path, "github.com/twmb/")+" "+one.Version)
			}
		}
	}
	fmt.Println("ready", strings.Join(versions, ", "))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		said, err := answer(strings.Fields(lines.Text()))
		if err != nil {
			said = "no " + strings.ReplaceAll(err.Error(), "\n", " ")
		} else {
			said = "ok " + said
		}
		fmt.Println(said)
	}
}
