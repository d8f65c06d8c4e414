// franz-go as a recorded client: go run . PLAN.json
//
// Sends the samples of the plan with each codec, reads everything back in a group of two members, commits and aborts
// transactions, and does some administration; prints records and notes as JSON lines. With "ca" (a PEM file) it speaks
// TLS, and with "keylog" (a file) it writes down the secrets.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type sample struct {
	Key        []byte            `json:"key"`
	Value      []byte            `json:"value"`
	Timestamp  *int64            `json:"timestamp"`
	RawHeaders []json.RawMessage `json:"headers"`
}

type plan struct {
	Bootstrap string   `json:"bootstrap"`
	Prefix    string   `json:"prefix"`
	Codecs    []string `json:"codecs"`
	Samples   []sample `json:"samples"`
	CA        string   `json:"ca"`
	Keylog    string   `json:"keylog"`
	Member    string   `json:"member"` // a topic: be a member of a group until the input ends, and nothing else
}

var lock sync.Mutex

func say(line map[string]any) {
	lock.Lock()
	defer lock.Unlock()
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func headersOf(s sample) []kgo.RecordHeader {
	var out []kgo.RecordHeader
	for _, each := range s.RawHeaders {
		var pair []json.RawMessage
		var name string
		var value []byte
		if json.Unmarshal(each, &pair) != nil || json.Unmarshal(pair[0], &name) != nil || json.Unmarshal(pair[1], &value) != nil {
			panic("headers of the plan")
		}
		out = append(out, kgo.RecordHeader{Key: name, Value: value})
	}
	return out
}

// describe keeps null (nil) and empty apart: encoding/json writes nil slices as null and empty ones as "".
func describe(r *kgo.Record, direction string) map[string]any {
	headers := [][]any{}
	for _, h := range r.Headers {
		headers = append(headers, []any{h.Key, h.Value})
	}
	return map[string]any{"direction": direction, "topic": r.Topic, "partition": r.Partition, "offset": r.Offset,
		"timestamp": r.Timestamp.UnixMilli(), "timestamp_type": nil, "key": r.Key, "value": r.Value, "headers": headers}
}

var codecs = map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}

func secured(p plan) *tls.Config {
	text, err := os.ReadFile(p.CA)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if p.Keylog != "" {
		file, err := os.OpenFile(p.Keylog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		config.KeyLogWriter = file
	}
	return config
}

func options(p plan, more ...kgo.Opt) []kgo.Opt {
	base := []kgo.Opt{kgo.SeedBrokers(strings.Split(p.Bootstrap, ",")...), kgo.ClientID("franz-" + p.Prefix),
		kgo.ProducerLinger(50 * time.Millisecond)}
	if p.CA != "" {
		base = append(base, kgo.DialTLSConfig(secured(p)))
	}
	return append(base, more...)
}

func produce(ctx context.Context, p plan, topic string, what []sample, codec string, acks int, more ...kgo.Opt) {
	opts := options(p, more...)
	opts = append(opts, kgo.ProducerBatchCompression(codecs[codec]), kgo.DefaultProduceTopic(topic))
	switch acks {
	case 0:
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case 1:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	send(ctx, client, what, codec, acks, "")
}

func send(ctx context.Context, client *kgo.Client, what []sample, codec string, acks int, transaction string) {
	var wait sync.WaitGroup
	for _, s := range what {
		record := &kgo.Record{Key: s.Key, Value: s.Value, Headers: headersOf(s)}
		if s.Timestamp != nil {
			record.Timestamp = time.UnixMilli(*s.Timestamp)
		}
		wait.Add(1)
		client.Produce(ctx, record, func(r *kgo.Record, err error) {
			defer wait.Done()
			line := describe(r, "produce")
			line["codec"], line["acks"] = codec, acks
			if acks == 0 {
				line["offset"] = nil
			}
			if transaction != "" {
				line["transaction"] = transaction
			}
			if err != nil {
				line["error"], line["offset"] = err.Error(), nil
			}
			say(line)
		})
	}
	wait.Wait()
}

func transactions(ctx context.Context, p plan, topic string) {
	client, err := kgo.NewClient(options(p, kgo.TransactionalID(p.Prefix+"-id"), kgo.DefaultProduceTopic(topic))...)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	for _, commit := range []bool{true, false, true} {
		if err := client.BeginTransaction(); err != nil {
			panic(err)
		}
		word := map[bool]string{true: "committed", false: "aborted"}[commit]
		send(ctx, client, p.Samples[:5], "default", -1, word)
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
			say(map[string]any{"note": "end transaction", "error": err.Error()})
		}
	}
}

func member(ctx context.Context, p plan, group string, topics []string, life time.Duration, more ...kgo.Opt) {
	opts := options(p, append(more, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.HeartbeatInterval(500*time.Millisecond), kgo.SessionTimeout(6*time.Second),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			say(map[string]any{"note": "assigned", "group": group, "partitions": got})
		}))...)
	client, err := kgo.NewClient(opts...)
	if err != nil {
		panic(err)
	}
	limit, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	for limit.Err() == nil {
		fetches := client.PollFetches(limit)
		fetches.EachRecord(func(r *kgo.Record) {
			line := describe(r, "fetch")
			line["timestamp_type"] = r.Attrs.TimestampType()
			say(line)
		})
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			say(map[string]any{"note": "commit failed", "group": group, "error": err.Error()})
		}
	}
	client.Close()
}

func attempt(what string, call func() error) {
	line := map[string]any{"note": "admin", "call": what, "error": nil}
	if err := call(); err != nil {
		line["error"] = err.Error()
	}
	say(line)
}

func administration(ctx context.Context, p plan, client *kadm.Client, topics []string, group string) {
	topic := topics[0]
	set := func() kadm.TopicsSet { s := kadm.TopicsSet{}; s.Add(topic, 0); return s }()
	attempt("ListTopics", func() error { _, err := client.ListTopics(ctx); return err })
	attempt("ListGroups", func() error { _, err := client.ListGroups(ctx); return err })
	attempt("DescribeGroups", func() error { _, err := client.DescribeGroups(ctx, group); return err })
	attempt("FetchOffsets", func() error { _, err := client.FetchOffsets(ctx, group); return err })
	attempt("ListStartOffsets", func() error { _, err := client.ListStartOffsets(ctx, topic); return err })
	attempt("ListCommittedOffsets", func() error { _, err := client.ListCommittedOffsets(ctx, topic); return err })
	attempt("OffsetForLeaderEpoch", func() error {
		var r kadm.OffsetForLeaderEpochRequest
		r.Add(topic, 0, 0)
		_, err := client.OffsetForLeaderEpoch(ctx, r)
		return err
	})
	attempt("DescribeTopicConfigs", func() error { _, err := client.DescribeTopicConfigs(ctx, topic); return err })
	value := "3600000"
	attempt("AlterTopicConfigs", func() error {
		_, err := client.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}, topic)
		return err
	})
	attempt("AlterTopicConfigsState", func() error {
		_, err := client.AlterTopicConfigsState(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic)
		return err
	})
	attempt("CreatePartitions", func() error { _, err := client.CreatePartitions(ctx, 1, topic); return err })
	attempt("DeleteRecords", func() error {
		offsets := kadm.Offsets{}
		offsets.AddOffset(topic, 0, 1, -1)
		_, err := client.DeleteRecords(ctx, offsets)
		return err
	})
	attempt("DescribeAllLogDirs", func() error { _, err := client.DescribeAllLogDirs(ctx, set); return err })
	attempt("DescribeProducers", func() error { _, err := client.DescribeProducers(ctx, set); return err })
	attempt("ListTransactions", func() error { _, err := client.ListTransactions(ctx, nil, nil); return err })
	attempt("DescribeTransactions", func() error { _, err := client.DescribeTransactions(ctx, p.Prefix+"-id"); return err })
	attempt("ElectLeaders", func() error { _, err := client.ElectLeaders(ctx, kadm.ElectPreferredReplica, set); return err })
	attempt("ListPartitionReassignments", func() error { _, err := client.ListPartitionReassignments(ctx, set); return err })
	attempt("AlterPartitionAssignments", func() error {
		var r kadm.AlterPartitionAssignmentsReq
		r.Assign(topic, 0, []int32{1})
		_, err := client.AlterPartitionAssignments(ctx, r)
		return err
	})
	acls := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead).Allow("User:someone").AllowHosts("*")
	attempt("CreateACLs", func() error { _, err := client.CreateACLs(ctx, acls); return err })
	attempt("DescribeACLs", func() error { _, err := client.DescribeACLs(ctx, acls); return err })
	attempt("DeleteACLs", func() error { _, err := client.DeleteACLs(ctx, acls); return err })
	attempt("DescribeUserSCRAMs", func() error { _, err := client.DescribeUserSCRAMs(ctx); return err })
	attempt("AlterUserSCRAMs", func() error {
		_, err := client.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: "someone", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "not-a-secret"}})
		return err
	})
	kind, rate := "client-id", 1000000.0
	name := "franz"
	entity := kadm.ClientQuotaEntity{{Type: kind, Name: &name}}
	attempt("AlterClientQuotas", func() error {
		_, err := client.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: rate}}}})
		return err
	})
	attempt("DescribeClientQuotas", func() error {
		_, err := client.DescribeClientQuotas(ctx, false, []kadm.DescribeClientQuotaComponent{{Type: kind, MatchName: &name, MatchType: kmsg.QuotasMatchTypeExact}})
		return err
	})
	attempt("DescribeQuorum", func() error {
		r := kmsg.NewPtrDescribeQuorumRequest()
		t := kmsg.NewDescribeQuorumRequestTopic()
		t.Topic = "__cluster_metadata"
		t.Partitions = append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
		r.Topics = append(r.Topics, t)
		_, err := r.RequestWith(ctx, rawClient)
		return err
	})
	attempt("DescribeCluster", func() error {
		_, err := kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, rawClient)
		return err
	})
	attempt("DeleteOffsets", func() error { _, err := client.DeleteOffsets(ctx, group, set); return err })
	attempt("DeleteGroups", func() error { _, err := client.DeleteGroups(ctx, group); return err })
	attempt("DeleteTopics", func() error { _, err := client.DeleteTopics(ctx, p.Prefix+"-tx"); return err })
}

var rawClient *kgo.Client

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "github.com/twmb/franz-go" {
			return "franz-go " + dep.Version
		}
	}
	return "franz-go"
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		panic(err)
	}
	ctx := context.Background()
	say(map[string]any{"note": "version", "version": version()})
	if p.Member != "" {
		live, cancel := context.WithCancel(ctx)
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
		member(live, p, "franz-group", []string{p.Member}, time.Hour)
		return
	}
	rawClient, err = kgo.NewClient(options(p)...)
	if err != nil {
		panic(err)
	}
	admin := kadm.NewClient(rawClient)
	var topics []string
	for _, codec := range p.Codecs {
		topics = append(topics, p.Prefix+"-"+codec)
	}
	tx := p.Prefix + "-tx"
	attempt("CreateTopics", func() error { _, err := admin.CreateTopics(ctx, 2, 1, nil, append(topics, tx)...); return err })
	for n, codec := range p.Codecs {
		produce(ctx, p, topics[n], p.Samples, codec, -1)
		produce(ctx, p, topics[n], p.Samples[:3], codec, 1)
		produce(ctx, p, topics[n], p.Samples[:2], codec, 0)
	}
	transactions(ctx, p, tx)
	group := p.Prefix + "-group"
	var wait sync.WaitGroup
	wait.Add(2)
	go func() { defer wait.Done(); member(ctx, p, group, topics, 5*time.Second) }()
	go func() {
		defer wait.Done()
		time.Sleep(1500 * time.Millisecond)
		member(ctx, p, group, topics, 2*time.Second, kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer()))
	}()
	wait.Wait()
	administration(ctx, p, admin, topics, group)
	rawClient.Close()
}
