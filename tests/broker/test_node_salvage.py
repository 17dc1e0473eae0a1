"""What a replica truncates in a cluster is in its quarantine first, record for record."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tanist.client.admin import BROKER_RESOURCE, TOPIC_RESOURCE
from tanist.controller.image.image import ELR_VERSION
from tanist.events.storage import RecordsSalvaged
from tanist.log.salvage.manifest import QUARANTINE, Manifest, SalvageReason
from tanist.log.salvage.quarantine import Quarantine
from tanist.wire.batch import decode_batch, iterate_headers
from tests.broker.cluster_rig import Cluster, out_of_descriptors

ROOT = f"/data/{QUARANTINE}"
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
LOST = [b"lost %d" % n for n in range(10)]


class Story:
    """Broker 4 leads alone, is acknowledged records that no other broker has, and dies; 5 is elected uncleanly."""

    def __init__(self, **config: str) -> None:
        named = {name.replace("_", "."): value for name, value in config.items()}
        self.cluster = Cluster(nodes=5, config={**UNCLEAN, **named})
        self.world = self.cluster.world
        self.cluster.create_topic("t", assignment=[[4, 5]])
        assert self.cluster.produce("t", [b"common"]).error_code == 0
        self.cluster.until(lambda: all(h.log.log_end_offset == 1 for h in self.cluster.hosted("t").values()))
        self.cluster.host(5).kill()
        self.cluster.until(lambda: len(self.leader_state().isr) == 1)
        for value in LOST:
            assert self.cluster.produce("t", [value]).error_code == 0

    def leader_state(self) -> Any:
        leader = self.cluster.leader("t")
        assert leader is not None
        return self.cluster.hosted("t")[leader].leader

    def elect_uncleanly(self) -> None:
        self.cluster.host(4).kill()
        self.cluster.until(lambda: self.cluster.leader("t") is None)
        self.cluster.host(5).start()
        self.cluster.until(lambda: self.cluster.leader("t") == 5, within_ms=400_000)
        assert self.cluster.produce("t", [b"after"]).error_code == 0

    def come_back(self) -> None:
        self.cluster.host(4).start()
        self.cluster.until(lambda: len(self.leader_state().isr) == 2)
        assert self.cluster.values("t") == [b"common", b"after"]

    @property
    def disk(self) -> Any:
        return self.cluster.host(4).disk

    def entries(self) -> list[Manifest]:
        view = self.disk.view(self.cluster.client.process)
        return Quarantine(view, "/data", 4, itertools.count(1)).entries()

    def saved(self, manifest: Manifest) -> list[bytes]:
        """The values of an entry's records."""
        values: list[bytes] = []
        for file in manifest.files:
            view = memoryview(self.disk.content(f"{ROOT}/{manifest.entry_id}/{file.name}"))
            assert len(view) == file.size_bytes
            for at, header in iterate_headers(view):
                values += [bytes(record.value or b"") for record in decode_batch(view[at : at + header.size_bytes])]
        return values

    def said(self, words: str) -> bool:
        return any(words in line for line in self.cluster.log)


def test_an_unclean_election_loses_nothing_for_good() -> None:
    story = Story()
    story.elect_uncleanly()
    assert story.entries() == []
    story.come_back()
    (manifest,) = story.entries()
    assert story.saved(manifest) == LOST
    topic_id = story.cluster.hosted("t")[4].topic_id
    assert (manifest.topic, manifest.topic_id, manifest.partition, manifest.broker_id) == ("t", topic_id, 0, 4)
    assert manifest.why is SalvageReason.UNCLEAN_ELECTION
    assert (manifest.from_offset, manifest.to_offset) == (1, 11)
    assert manifest.leader_epoch == story.cluster.hosted("t")[5].leader_epoch > manifest.last_epoch >= 0
    assert story.said("is saved before it is dropped")
    salvage = story.cluster.node(4).components.salvage
    assert (salvage.saved, salvage.saved_bytes, salvage.failures) == (1, manifest.size_bytes, 0)


def test_what_a_clean_election_loses_is_not_said_to_be_lost_by_an_unclean_one() -> None:
    """Before KIP-966: the last member of the ISR loses its page cache and leads again, cleanly by the rules."""
    settings = {"min.insync.replicas": "1", "replica.lag.time.max.ms": "500"}
    cluster = Cluster(nodes=5, config=settings, features={ELR_VERSION: 0})
    cluster.create_topic("t", assignment=[[4, 5]])
    assert cluster.produce("t", [b"common"]).error_code == 0
    cluster.until(lambda: cluster.hosted("t")[5].replica.high_watermark == 1)
    cluster.cut(5, 1, 2, 3, 4)
    leader = cluster.hosted("t")[4].leader
    assert leader is not None
    cluster.until(lambda: len(leader.isr) == 1)
    cluster.host(4).lose_power()
    log = cluster.host(4).disk.inode(f"/data/t-0/{0:020d}.log")
    log.data.clear()  # some of it may have reached the disk
    log.durable.clear()
    cluster.host(4).start()
    cluster.until(lambda: cluster.leader("t") == 4)
    assert cluster.values("t") == []
    assert cluster.produce("t", [b"after"]).error_code == 0
    cluster.heal()
    cluster.until(lambda: bool(cluster.node(5).components.salvage.saved))
    state = cluster.partition("t")
    assert state.last_unclean_epoch == -1
    view = cluster.host(5).disk.view(cluster.client.process)
    (manifest,) = Quarantine(view, "/data", 5, itertools.count(1)).entries()
    assert manifest.why is SalvageReason.CLEAN_ELECTION
    assert "clean-election" in {each.reason for each in cluster.seen(RecordsSalvaged)}


def test_records_that_were_never_committed_are_saved_as_well() -> None:
    """A clean failover costs what only the leader had: acks=1 was acknowledged as soon as it was written."""
    cluster = Cluster(nodes=5, config={"min.insync.replicas": "2"})
    cluster.create_topic("t", assignment=[[4, 5]])
    cluster.produce("t", [b"common"])
    cluster.until(lambda: all(h.log.log_end_offset == 1 for h in cluster.hosted("t").values()))
    cluster.run(6_000)  # the high watermark is written down every five seconds
    cluster.cut(4, 5)
    cluster.reset(4, 5)
    assert cluster.produce("t", [b"only here"], acks=1, to=4).error_code == 0
    assert cluster.hosted("t")[5].log.log_end_offset == 1
    cluster.host(4).kill()
    cluster.heal()
    cluster.until(lambda: cluster.leader("t") == 5)
    cluster.produce("t", [b"elsewhere"], acks=1)
    cluster.host(4).start()
    cluster.until(lambda: cluster.node(4).components.salvage.saved > 0)
    cluster.until(lambda: cluster.values("t") == [b"common", b"elsewhere"])
    view = cluster.host(4).disk.view(cluster.client.process)
    (manifest,) = Quarantine(view, "/data", 4, itertools.count(1)).entries()
    assert manifest.why is SalvageReason.FOLLOWER_TRUNCATION
    assert (manifest.from_offset, manifest.to_offset, manifest.high_watermark) == (1, 2, 1)


@pytest.mark.parametrize("fuse", range(0, 48, 4))
def test_a_crash_in_the_middle_costs_no_record(fuse: int) -> None:
    """Of the returning broker's disk changes each may be the last of that life; then the power goes."""
    story = Story()
    story.elect_uncleanly()
    story.cluster.host(4).start()
    node = story.cluster.node(4)
    story.cluster.until(lambda: node.replicas.get("t", 0) is not None)
    story.cluster.host(4).process.fuse = fuse
    story.cluster.run(1_500)
    if story.cluster.host(4).up:
        story.cluster.host(4).lose_power()
    else:
        story.disk.lose_power()
    story.come_back()
    assert all(story.saved(manifest) == LOST for manifest in story.entries())
    assert 1 <= len(story.entries()) <= 2


def test_switched_off_nothing_is_kept() -> None:
    story = Story(tanist_salvage_enable="false")
    story.elect_uncleanly()
    story.come_back()
    assert not story.disk.find(ROOT)
    assert story.said("truncated 10 records, from offset 1")


def test_a_topic_may_be_left_out() -> None:
    story = Story()
    story.cluster.configure(TOPIC_RESOURCE, "t", {"tanist.salvage.enable": "false"})
    story.elect_uncleanly()
    story.come_back()
    assert not story.disk.find(ROOT)


def failing_quarantine(story: Story) -> None:
    story.disk.failing.append(ROOT)


def test_if_it_cannot_be_saved_the_replica_follows_all_the_same_and_says_what_is_lost() -> None:
    story = Story()
    story.elect_uncleanly()
    failing_quarantine(story)
    story.come_back()
    assert story.said("from offset 1 on are NOT saved (unclean-election), they are dropped")
    assert story.cluster.node(4).components.salvage.failures == 1
    assert story.cluster.host(4).up


def test_or_waits_if_it_was_reported_to() -> None:
    story = Story(tanist_salvage_on_failure="wait")
    story.elect_uncleanly()
    failing_quarantine(story)
    story.cluster.host(4).start()
    story.cluster.until(lambda: story.said("are NOT saved (unclean-election), the replica waits"))
    story.cluster.run(20_000)
    hosted = story.cluster.hosted("t")
    assert hosted[4].log.log_end_offset == 11
    assert len(story.leader_state().isr) == 1
    assert story.cluster.produce("t", [b"meanwhile"]).error_code == 0
    story.disk.failing.clear()
    story.cluster.until(lambda: len(story.leader_state().isr) == 2)
    (manifest,) = story.entries()
    assert story.saved(manifest) == LOST
    assert story.cluster.values("t") == [b"common", b"after", b"meanwhile"]


def test_while_descriptors_are_short_it_waits_whatever_was_asked_for() -> None:
    story = Story()
    story.elect_uncleanly()
    enough = out_of_descriptors(story.cluster.host(4), ROOT)
    story.cluster.host(4).start()
    story.cluster.until(lambda: story.said("are NOT saved (unclean-election), the replica waits"))
    assert story.cluster.hosted("t")[4].log.log_end_offset == 11
    enough()
    story.cluster.until(lambda: len(story.leader_state().isr) == 2)
    (manifest,) = story.entries()
    assert story.saved(manifest) == LOST


def test_one_who_waits_is_let_go_when_salvage_is_switched_off() -> None:
    story = Story(tanist_salvage_on_failure="wait")
    story.elect_uncleanly()
    failing_quarantine(story)
    story.cluster.host(4).start()
    story.cluster.until(lambda: story.said("the replica waits"))
    story.cluster.configure(BROKER_RESOURCE, "", {"tanist.salvage.enable": "false"})
    story.cluster.until(lambda: len(story.leader_state().isr) == 2)
    assert story.cluster.values("t") == [b"common", b"after"]


def test_the_bound_in_bytes_keeps_the_newest_records() -> None:
    story = Story(tanist_salvage_retention_bytes="300")
    story.elect_uncleanly()
    story.come_back()
    (manifest,) = story.entries()
    kept = story.saved(manifest)
    assert 0 < manifest.size_bytes <= 300
    assert kept == LOST[-len(kept) :]
    assert manifest.unsaved is not None
    assert (manifest.unsaved.from_offset, manifest.unsaved.to_offset) == (1, 11 - len(kept))
    assert story.said("NOT saved: tanist.salvage.retention.bytes has no space")


def test_the_bound_in_time_is_kept_and_each_removal_is_reported() -> None:
    story = Story(tanist_salvage_retention_ms="60000", log_retention_check_interval_ms="10000")
    story.elect_uncleanly()
    story.come_back()
    (manifest,) = story.entries()
    story.cluster.run(45_000)
    assert len(story.entries()) == 1
    story.cluster.until(lambda: not story.entries(), within_ms=30_000)
    assert story.said(f"salvage {manifest.entry_id} (t-0, offset 1 to 11, {manifest.size_bytes} bytes) is removed: it")
    assert story.cluster.node(4).components.salvage.removed == 1


def test_a_replica_that_comes_to_lead_meanwhile_keeps_its_log_and_leaves_no_salvage() -> None:
    """The leader that lacks the records goes while the follower saves them; the follower is elected."""
    story = Story(unclean_leader_election_interval_ms="1000")
    story.elect_uncleanly()
    story.cluster.host(4).start()
    node = story.cluster.node(4)
    held: list[Any] = []
    run = node.context.disk.run

    def hold(job: Any, done: Any) -> None:
        held.append((job, done))

    node.context.disk.run = hold  # type: ignore[method-assign]
    story.cluster.until(lambda: bool(held))
    story.cluster.host(5).kill()
    story.cluster.until(lambda: story.cluster.leader("t") == 4, within_ms=60_000)
    node.context.disk.run = run  # type: ignore[method-assign]
    for job, done in held:
        run(job, done)
    story.cluster.until(lambda: story.cluster.values("t") == [b"common", *LOST])
    story.cluster.run(1_000)
    assert story.entries() == []
    assert node.components.salvage.saved == 0


def test_sound_batches_behind_damage_are_saved_by_the_start() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", factor=1)
    for value in LOST:
        cluster.produce("t", [value])
    host = cluster.host(1)
    host.kill()
    size = len(host.disk.content(f"/data/t-0/{0:020d}.log")) // len(LOST)
    host.disk.corrupt(f"/data/t-0/{0:020d}.log", 4 * size + size - 1)
    host.start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert cluster.values("t") == LOST[:4]
    (name,) = [each for each in host.disk.view(cluster.client.process).list(ROOT) if each != "README.txt"]
    manifest = json.loads(host.disk.content(f"{ROOT}/{name}/manifest.json"))
    assert (manifest["why"], manifest["from_offset"], manifest["to_offset"]) == ("recovery-cut", 4, -1)
    (file,) = manifest["files"]
    assert file["bytes"] == 6 * size
    # A torn end alone is no salvage: no client has seen it acknowledged.
    host.kill()
    data = host.disk.inode(f"/data/t-0/{0:020d}.log").data
    data += data[: size - 5]
    host.start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert len(host.disk.view(cluster.client.process).list(ROOT)) == 2


def test_a_start_that_must_not_lose_takes_the_directory_offline_instead() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1", "tanist.salvage.on.failure": "wait"})
    cluster.create_topic("t", factor=1)
    for value in LOST:
        cluster.produce("t", [value])
    host = cluster.host(1)
    host.kill()
    path = f"/data/t-0/{0:020d}.log"
    size = len(host.disk.content(path)) // len(LOST)
    host.disk.corrupt(path, 4 * size + size - 1)
    before = host.disk.content(path)
    host.disk.failing.append(ROOT)
    host.start()
    cluster.until(lambda: not host.up)
    assert any("t-0 is not opened, for what is behind its damage cannot be saved" in line for line in cluster.log)
    assert host.disk.content(path) == before
    host.disk.failing.clear()
    host.start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert cluster.values("t") == LOST[:4]


def test_a_start_that_has_no_descriptor_to_save_with_drops_nothing() -> None:
    cluster = Cluster(nodes=1, config={"min.insync.replicas": "1"})
    cluster.create_topic("t", factor=1)
    for value in LOST:
        cluster.produce("t", [value])
    host = cluster.host(1)
    host.kill()
    path = f"/data/t-0/{0:020d}.log"
    size = len(host.disk.content(path)) // len(LOST)
    host.disk.corrupt(path, 4 * size + size - 1)
    before = host.disk.content(path)
    enough = out_of_descriptors(host, ROOT)
    host.start()
    cluster.until(lambda: not host.up)
    assert host.fatal == "only 0 logs could be opened: Too many open files"
    assert host.disk.content(path) == before
    enough()
    host.start()
    cluster.until(lambda: cluster.leader("t") == 1)
    assert cluster.values("t") == LOST[:4]
    assert len(host.disk.view(cluster.client.process).list(ROOT)) == 2  # the entry, and README.txt
