// One member of a group, with franz-go, as a process that can be killed: what group_member.py is for Python's libraries.
//
//	member PROTOCOL BOOTSTRAP GROUP TOPIC
//
// PROTOCOL is "classic" (cooperative, as franz-go has it by default) or "consumer" (KIP-848). Prints a JSON object a line:
// `partitions_assigned` and `partitions_revoked` with what is new and what is taken away, and `record_data` for each
// record, after which it commits. SIGTERM makes it leave its group and end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

type part struct {
	Partition int32 `json:"partition"`
}

type event struct {
	Name       string `json:"name"`
	Partitions []part `json:"partitions"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
}

// Callbacks come from other goroutines than records do.
var printing sync.Mutex

func tell(what event) {
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(line))
}

func telling(name, topic string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
		parts := make([]part, 0, len(changed[topic]))
		for _, index := range changed[topic] {
			parts = append(parts, part{index})
		}
		tell(event{Name: name, Partitions: parts})
	}
}

func run(protocol, bootstrap, group, topic string) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(telling("partitions_assigned", topic)),
		kgo.OnPartitionsRevoked(telling("partitions_revoked", topic)),
		kgo.OnPartitionsLost(telling("partitions_revoked", topic)),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, nil)),
	}
	switch protocol {
	case "classic":
		options = append(options, kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond))
	case "consumer":
		options = append(options, kgo.ServerSideBalancer())
	default:
		return fmt.Errorf("no such protocol: %s", protocol)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	leaving, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for leaving.Err() == nil {
		records := client.PollFetches(leaving).Records()
		for _, record := range records {
			tell(event{Name: "record_data", Partition: record.Partition, Offset: record.Offset})
		}
		if len(records) > 0 {
			if err := client.CommitRecords(context.Background(), records...); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		client.AllowRebalance()
	}
	return nil
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: member PROTOCOL BOOTSTRAP GROUP TOPIC")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
