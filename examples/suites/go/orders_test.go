// A suite in Go: franz-go, and a cluster that it breaks with `tanist`.
package orders

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

type fault struct{ Rule, Hits int }

// tanist runs a command, and decodes what it prints into out.
func tanist(t *testing.T, out any, words ...string) {
	t.Helper()
	printed, err := exec.Command("tanist", append(words, "--json")...).Output()
	if err != nil {
		t.Fatalf("tanist %s: %v", strings.Join(words, " "), err)
	}
	if out != nil && json.Unmarshal(printed, out) != nil {
		t.Fatalf("tanist %s printed %s", strings.Join(words, " "), printed)
	}
}

func hits(t *testing.T, rule int) int {
	var found struct{ Faults []fault }
	tanist(t, &found, "faults", "list")
	for _, each := range found.Faults {
		if each.Rule == rule {
			return each.Hits
		}
	}
	t.Fatalf("there is no rule %d", rule)
	return 0
}

func TestOrders(t *testing.T) {
	os.Setenv("TANIST_DATA", filepath.Join(t.TempDir(), "cluster"))
	var cluster struct{ Bootstrap string }
	tanist(t, &cluster, "up", "--detach", "--port", "0")
	t.Cleanup(func() { tanist(t, nil, "down", "--wipe", "--yes") })
	tanist(t, nil, "topics", "create", "orders", "--partitions", "1", "--replication-factor", "3")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(cluster.Bootstrap, ",")...),
		kgo.DefaultProduceTopic("orders"),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	send := func(t *testing.T, value string) {
		t.Cleanup(func() { tanist(t, nil, "heal") })
		if err := client.ProduceSync(context.Background(), kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("an order is sent again when too few replicas are in sync", func(t *testing.T) {
		var injected fault
		tanist(t, &injected, "faults", "inject", "error", "PRODUCE", "NOT_ENOUGH_REPLICAS", "--once")
		send(t, "order 1")
		if found := hits(t, injected.Rule); found != 1 {
			t.Fatalf("the fault has %d hits", found)
		}
	})

	t.Run("an order survives the death of a broker", func(t *testing.T) {
		tanist(t, nil, "crash", "1")
		send(t, "order 2")
		tanist(t, nil, "start", "1")
		tanist(t, nil, "wait", "--topic", "orders", "--isr", "3")
	})
}
