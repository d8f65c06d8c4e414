// Sarama with default settings: go run . BOOTSTRAP TOPIC
//
// Writes 20 values, reads 20 as a member of a group, commits, and prints what it has read. Sarama needs to be told to
// give back successes, and to begin with the oldest offset.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type reader struct {
	values chan string
}

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		session.Commit()
		r.values <- string(message.Value)
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	addresses := strings.Split(os.Args[1], ",")
	producer, err := sarama.NewSyncProducer(addresses, config)
	must(err)
	for number := range 20 {
		value := sarama.StringEncoder(fmt.Sprintf("value %d", number))
		_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: os.Args[2], Value: value})
		must(err)
	}
	must(producer.Close())
	group, err := sarama.NewConsumerGroup(addresses, "g", config)
	must(err)
	values := make(chan string, 100)
	done := make(chan error, 1)
	go func() { done <- group.Consume(ctx, []string{os.Args[2]}, reader{values}) }()
	for range 20 {
		select {
		case value := <-values:
			fmt.Println(value)
		case <-ctx.Done():
			must(ctx.Err())
		}
	}
	cancel()
	must(<-done)
	must(group.Close())
}
