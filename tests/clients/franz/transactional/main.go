// A transactional producer of franz-go, and what it says when it begins: what transactional.py is for Python's libraries.
//
//	transactional BOOTSTRAP TOPIC
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func run(bootstrap, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.TransactionalID("tx-franz"))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	record := &kgo.Record{Topic: topic, Value: []byte("value")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(context.Background(), kgo.TryCommit)
}

func main() {
	began := time.Now()
	found := map[string]any{"error": nil, "fatal": nil}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		found["error"] = err.Error()
	}
	found["seconds"] = float64(time.Since(began).Milliseconds()) / 1000
	line, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
