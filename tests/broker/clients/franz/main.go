// franz-go with default settings: go run . BOOTSTRAP TOPIC
//
// Writes 20 values, reads 20 as a member of a group, commits, and prints what it has read.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	seeds := kgo.SeedBrokers(strings.Split(os.Args[1], ",")...)
	producer, err := kgo.NewClient(seeds)
	must(err)
	for number := range 20 {
		record := &kgo.Record{Topic: os.Args[2], Value: fmt.Appendf(nil, "value %d", number)}
		must(producer.ProduceSync(ctx, record).FirstErr())
	}
	producer.Close()
	consumer, err := kgo.NewClient(seeds, kgo.ConsumerGroup("g"), kgo.ConsumeTopics(os.Args[2]))
	must(err)
	for count := 0; count < 20; {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(one *kgo.Record) {
			fmt.Println(string(one.Value))
			count++
		})
	}
	must(consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
}
