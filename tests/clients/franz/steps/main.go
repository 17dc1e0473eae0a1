// Steps with franz-go. See tests/clients/step_programs.py.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const stepTime = 20 * time.Second

type settings struct {
	Bootstrap, Protocol, CA, Certificate string
	Mechanism, Username, Password, Token string
	Steps                                [][2]json.RawMessage
}

type step struct {
	Topic, ID, Group string
	Values           []string
	Count            int
}

func (s settings) options() ([]kgo.Opt, error) {
	authority, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if s.Certificate != "" {
		own, err := tls.LoadX509KeyPair(s.Certificate, s.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(s.Bootstrap), kgo.DialTLSConfig(config), kgo.RequestRetries(2), kgo.RecordRetries(2),
		kgo.RetryTimeout(5 * time.Second), kgo.UnknownTopicRetries(2),
	}
	switch s.Mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: s.Token}.AsMechanism()))
	}
	return options, nil
}

func (s step) records() []*kgo.Record {
	var records []*kgo.Record
	for _, value := range s.Values {
		records = append(records, &kgo.Record{Topic: s.Topic, Value: []byte(value)})
	}
	return records
}

func (s step) run(ctx context.Context, name string, options []kgo.Opt) (any, error) {
	switch name {
	case "transaction":
		options = append(options, kgo.TransactionalID(s.ID))
	case "consume":
		options = append(options, kgo.ConsumerGroup(s.Group), kgo.ConsumeTopics(s.Topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	switch name {
	case "create":
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = s.Topic, 1, 1
		request := kmsg.NewPtrCreateTopicsRequest()
		request.Topics = append(request.Topics, topic)
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			return nil, err
		}
		return nil, kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	case "produce":
		return nil, client.ProduceSync(ctx, s.records()...).FirstErr()
	case "transaction":
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
		if err := client.ProduceSync(ctx, s.records()...).FirstErr(); err != nil {
			return nil, err
		}
		return nil, client.EndTransaction(ctx, kgo.TryCommit)
	case "consume":
		var found []string
		for len(found) < s.Count {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return nil, err
			}
			fetches.EachRecord(func(record *kgo.Record) { found = append(found, string(record.Value)) })
		}
		return found, nil
	}
	return nil, fmt.Errorf("no such step: %s", name)
}

func (s settings) outcome(raw [2]json.RawMessage) map[string]any {
	var name string
	var todo step
	options, err := s.options()
	if err = errors.Join(err, json.Unmarshal(raw[0], &name), json.Unmarshal(raw[1], &todo)); err != nil {
		return map[string]any{"error": err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTime)
	defer cancel()
	value, err := todo.run(ctx, name, options)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"value": value}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var found settings
		outcomes := []map[string]any{}
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			panic(err)
		}
		for _, raw := range found.Steps {
			outcomes = append(outcomes, found.outcome(raw))
		}
		line, err := json.Marshal(outcomes)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
}
