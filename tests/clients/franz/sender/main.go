// Sends what it reads, with franz-go: a value a line, and prints a line for each once it is acknowledged.
//
//	sender BOOTSTRAP TOPIC CLIENT_ID
//
// A request that is not answered within two seconds is tried again.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func run(bootstrap, topic, clientID string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ClientID(clientID),
		kgo.DefaultProduceTopic(topic),
		kgo.ProduceRequestTimeout(time.Second),
		kgo.RequestTimeoutOverhead(time.Second),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := client.ProduceSync(context.Background(), kgo.StringRecord(lines.Text())).FirstErr(); err != nil {
			return err
		}
		fmt.Println(lines.Text())
	}
	return lines.Err()
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
