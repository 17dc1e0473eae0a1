// A member of a group that copies one topic to another exactly once, with franz-go: what copier.py is for Python's libraries.
//
//	copier BOOTSTRAP SOURCE TARGET GROUP COUNT
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

const batch = 10

type counts struct {
	Committed int `json:"committed"`
	Aborted   int `json:"aborted"`
}

func run(bootstrap, source, target, group string, left int) (found counts, err error) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.TransactionalID(group),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic(target),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return found, err
	}
	defer session.Close()
	ctx := context.Background()
	for number := 1; left > 0; number++ {
		fetches := session.PollRecords(ctx, batch)
		if err := fetches.Err(); err != nil {
			return found, err
		}
		records := fetches.Records()
		if len(records) == 0 {
			number--
			continue
		}
		if err := session.Begin(); err != nil {
			return found, err
		}
		for _, record := range records {
			session.Produce(ctx, &kgo.Record{Partition: record.Partition, Value: record.Value}, nil)
		}
		committed, err := session.End(ctx, kgo.TransactionEndTry(number%3 != 0))
		if err != nil {
			return found, err
		}
		if committed {
			found.Committed++
			left -= len(records)
		} else {
			found.Aborted++ // the session goes back to what is committed
		}
	}
	return found, nil
}

func main() {
	count, err := strconv.Atoi(os.Args[5])
	if err != nil {
		panic(err)
	}
	found, err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4], count)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	line, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
