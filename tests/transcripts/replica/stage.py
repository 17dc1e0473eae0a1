"""The commands of the replica transcripts, played on real replicas (`tests/replica/replica_stage.py`).

cluster brokers=3 min-isr=2 [rules=before-kip-101|before-kip-966] [metadata=by-hand]
append B a b c [acks=0|1|all]     a producer writes these records at broker B
consume B OFFSET                  a consumer reads at broker B
fetch B [times=N]                 B's follower makes a whole round with its leader
ask B                             the same, but the answer is lost
fence B, unfence B, elect B, elect-unclean B, shutdown B      the controller acts, and all brokers learn of it
restart B [keep=N] [hw=N]         the process of B dies; keep: only N records had reached the disk
learn [B]                         brokers apply the metadata (by itself unless metadata=by-hand)
time +MS, lag-check B             time passes; B's leader looks for members that are late
alter-partition                   the controller answers what leaders have proposed, and they hear it
show, isr                         all replicas; what the controller has
quietly COMMAND                   any of these, for steps that a story has shown before
"""

from __future__ import annotations

from tanist.events.replication import BecameLeader, IsrChanged, IsrUpdateFailed, LogTruncated
from tanist.replica.effects import Effect, FetchAgain, HighWatermarkAdvanced, HighWatermarkSet, ProposeIsr
from tanist.replica.memory import Entry
from tanist.replica.partition import Partition
from tanist.replica.reads import READ_UNCOMMITTED, consumer_read
from tanist.wire.errors import ErrorCode
from tests.replica.replica_mutants import ComparesNoEpochs, HighWatermarkIgnoresMinIsr, TruncatesToHighWatermark
from tests.replica.replica_stage import AnswerInFlight, ProposalInFlight, ResultInFlight, Stage


class BeforeKip101(Partition):
    """Leaders compare no epochs, followers start by truncating to their high watermark."""

    __slots__ = ()
    leader_class = ComparesNoEpochs
    follower_class = TruncatesToHighWatermark


class BeforeKip966(Partition):
    """The high watermark advances with any ISR, however small."""

    __slots__ = ()
    leader_class = HighWatermarkIgnoresMinIsr


RULES = {"today": Partition, "before-kip-101": BeforeKip101, "before-kip-966": BeforeKip966}
ACKS = {"0": 0, "1": 1, "all": -1}


def _set(brokers: object) -> str:
    return "{" + ", ".join(str(broker) for broker in brokers) + "}"  # type: ignore[attr-defined]


def _error(code: int) -> str:
    return ErrorCode(code).name


class ReplicaTranscript:
    """The stage of one transcript."""

    def __init__(self) -> None:
        self.stage = Stage(lossy=True)
        self.by_hand = False
        self.down: set[int] = set()
        self.shown = 0
        """How many of the stage's effects have been printed."""
        self.produced: list[tuple[int, int, str]] = []
        """Produces with acks=all that wait: broker, required offset, records."""

    def run(self, command: str) -> str:
        name, *words = command.split()
        if name == "quietly":
            self.run(command.removeprefix(name))
            return ""
        options = dict(word.split("=", 1) for word in words if "=" in word)
        arguments = [word for word in words if "=" not in word]
        handler = getattr(self, "do_" + name.replace("-", "_"), None)
        if handler is None:
            raise ValueError(f"no such command: {name}")
        printed: list[str] = handler(*arguments, **{key.replace("-", "_"): value for key, value in options.items()})
        return "\n".join([*printed, *self._news()])

    # ---- telling what happened

    def _news(self) -> list[str]:
        news = [self._tell(broker, effect) for broker, effect in self.stage.effects[self.shown :]]
        self.shown = len(self.stage.effects)
        return [line for line in news if line] + self._acks()

    def _tell(self, broker: int, effect: Effect) -> str:
        match effect:
            case BecameLeader():
                start = effect.leader_epoch_start_offset
                return f"{broker} leads in epoch {effect.leader_epoch}, which begins at offset {start}"
            case HighWatermarkAdvanced():
                return f"{broker} advances its HW to {effect.high_watermark}"
            case HighWatermarkSet():
                return f"{broker} sets its HW to {effect.high_watermark}"
            case ProposeIsr():
                return f"{broker} proposes ISR {_set(member for member, _ in effect.isr)}"
            case IsrChanged():
                return f"{broker} counts with ISR {_set(effect.isr)}"
            case IsrUpdateFailed():
                return f"{broker} is refused: {_error(effect.error)}"
            case LogTruncated(fully=False):
                below = ", below its HW" if effect.offset < effect.previous_high_watermark else ""
                return f"{broker} truncates from {effect.previous_end_offset} to {effect.offset}{below}"
            case LogTruncated():
                return f"{broker} drops its whole log and starts at {effect.offset}"
            case FetchAgain(delay_ms=delay_ms) if delay_ms:
                return f"{broker} will fetch again in {delay_ms} ms"
        return ""

    def _acks(self) -> list[str]:
        lines = []
        for waiting in list(self.produced):
            broker, required, records = waiting
            leader = self.stage.replica(broker).leader
            if leader is None:
                lines.append(f"the producer of {records} gets {_error(ErrorCode.NOT_LEADER_OR_FOLLOWER)}")
                self.produced.remove(waiting)
                continue
            status = leader.acks_status(required)
            if status.done:
                what = f"gets {_error(status.error)}" if status.error else "learns that it is committed"
                lines.append(f"the producer of {records} {what}")
                self.produced.remove(waiting)
        return lines

    def _metadata(self) -> list[str]:
        line = self._controller()
        if not self.by_hand:
            self.do_learn()
        return [line]

    def _controller(self) -> str:
        now = self.stage.controller.partition
        leader = "nobody" if now.leader < 0 else str(now.leader)
        elr = f", ELR {_set(sorted(self.stage.controller.elr))}" if self.stage.controller.elr else ""
        return f"controller: leader {leader}, epoch {now.leader_epoch}, ISR {_set(now.isr)}{elr}"

    # ---- commands

    def do_cluster(
        self, brokers: str = "3", min_isr: str = "2", rules: str = "today", metadata: str = "at-once"
    ) -> list[str]:
        self.stage = Stage(int(brokers), int(min_isr), RULES[rules], lossy=True)
        self.by_hand = metadata == "by-hand"
        self.down.clear()
        self.produced.clear()
        self.shown = len(self.stage.effects)
        return [self._controller()]

    def do_append(self, broker: str, *values: str, acks: str = "1") -> list[str]:
        at = int(broker)
        error = self.stage.append(at, values, ACKS[acks])
        records = " ".join(values)
        if error:
            return [f"the producer of {records} gets {_error(error)}"]
        if acks == "all":
            self.produced.append((at, self.stage.log(at).log_end_offset, records))
            return []
        return [f"the producer of {records} learns that it is written"] if acks == "1" else []

    def do_consume(self, broker: str, offset: str) -> list[str]:
        replica, log, start = self.stage.replica(int(broker)), self.stage.log(int(broker)), int(offset)
        read = consumer_read(
            replica,
            fetch_offset=start,
            current_leader_epoch=-1,
            last_fetched_epoch=-1,
            isolation_level=READ_UNCOMMITTED,
            last_stable_offset=log.log_end_offset,
            leader_only=False,
        )
        if read.error:
            return [f"the consumer gets {_error(read.error)}"]
        entries = log.read(start, read.upper_offset)
        what = " ".join(entry.value for entry in entries) if entries else "nothing"
        return [f"the consumer reads {what}, HW is {read.upper_offset}"]

    def do_fetch(self, broker: str, times: str = "1") -> list[str]:
        lines: list[str] = []
        for _ in range(int(times)):
            lines += self._fetch(int(broker), heard=True)
        return lines

    def do_ask(self, broker: str) -> list[str]:
        return self._fetch(int(broker), heard=False)

    def _fetch(self, broker: int, *, heard: bool) -> list[str]:
        stage = self.stage
        follower = stage.replica(broker).follower
        if broker in self.down or follower is None or follower.leader in self.down or follower.leader < 0:
            return [f"{broker} has nobody to fetch from"]
        sent = stage.send_fetch(broker)
        if sent is None:
            return [f"{broker} waits"]
        message = stage.deliver(sent)
        answers = [m for m in stage.messages if isinstance(m, AnswerInFlight) and m.to == broker]
        if not answers:
            raise RuntimeError(f"no answer: {message}")
        answer = answers[-1].answer
        if answer.error:
            what = _error(answer.error)
        elif answer.diverging_epoch is not None:
            what = "your epoch {} ended at {}".format(*answer.diverging_epoch)
        else:
            records: tuple[Entry, ...] = answer.records
            what = f"sent {' '.join(entry.value for entry in records)}" if records else "nothing new"
            what += f", HW {answer.high_watermark}"
        news = self._news()
        if heard:
            stage.deliver(answers[-1])
        else:
            stage.messages.remove(answers[-1])
            what += " (lost on the way)"
        last = sent.position.last_fetched_epoch
        of_epoch = f" after epoch {last}" if last >= 0 else ""
        question = f"{broker} asks {sent.to} for {sent.position.offset}{of_epoch}"
        return [question, *news, f"{sent.to} answers: {what}", *self._news()]

    def do_fence(self, broker: str) -> list[str]:
        self.stage.controller.fence(int(broker))
        return self._metadata()

    def do_unfence(self, broker: str) -> list[str]:
        self.down.discard(int(broker))
        self.stage.learn(int(broker))
        self.stage.controller.unfence(int(broker))
        return self._metadata()

    def do_shutdown(self, broker: str) -> list[str]:
        self.stage.controller.shut_down(int(broker))
        return self._metadata()

    def do_elect(self, broker: str) -> list[str]:
        self.stage.controller.prefer(int(broker))
        return self._metadata()

    def do_elect_unclean(self, broker: str) -> list[str]:
        self.stage.controller.elect_unclean(int(broker))
        return self._metadata()

    def do_crash(self, broker: str) -> list[str]:
        """The process is gone; the controller notices by the missing heartbeats and fences it."""
        self.down.add(int(broker))
        return self.do_fence(broker)

    def do_restart(self, broker: str, keep: str | None = None, hw: str | None = None) -> list[str]:
        """Back on its log; registers, is unfenced once it has caught up with the metadata."""
        at = int(broker)
        self.stage.restart(at, checkpoint=None if hw is None else int(hw), keep=None if keep is None else int(keep))
        self.produced = [waiting for waiting in self.produced if waiting[0] != at]
        self.down.discard(at)
        line = f"{at} is back with {self._log(at)}, HW {self.stage.replica(at).high_watermark}"
        if not self.by_hand:
            self.stage.learn(at)
        self.stage.controller.unfence(at)
        return [line, *self._metadata()]

    def do_learn(self, *brokers: str) -> list[str]:
        for broker in map(int, brokers or self.stage.ids):
            if broker not in self.down:
                self.stage.learn(broker)
        return []

    def do_time(self, duration: str) -> list[str]:
        self.stage.now_ms += int(duration)
        return []

    def do_lag_check(self, broker: str) -> list[str]:
        self.stage.check_lag(int(broker))
        return []

    def do_alter_partition(self) -> list[str]:
        waiting = [m for m in self.stage.messages if isinstance(m, ProposalInFlight | ResultInFlight)]
        if not waiting:
            return ["nothing was proposed"]
        self.stage.settle_proposals()
        return self._metadata()

    def _log(self, broker: int) -> str:
        groups: list[str] = []
        epoch = None
        for entry in self.stage.log(broker).entries:
            if entry.leader_epoch != epoch:
                epoch = entry.leader_epoch
                groups.append(f"e{epoch}:")
            groups.append(entry.value)
        return " ".join(groups) or "nothing"

    def do_show(self) -> list[str]:
        rows = []
        for broker in self.stage.ids:
            replica, log = self.stage.replica(broker), self.stage.log(broker)
            role = "down" if broker in self.down else "follower" if replica.leader is None else "leader"
            known = ""
            if replica.leader is not None and broker not in self.down:
                remotes = replica.leader.remotes.values()
                known = "knows of " + ", ".join(
                    f"{r.broker_id}: {r.log_end_offset if r.log_end_offset >= 0 else '?'}" for r in remotes
                )
            marks = f"LEO {log.log_end_offset:<2} HW {replica.high_watermark:<2}"
            rows.append(f"{broker} {role:<8}  {marks} {self._log(broker):<20} {known}".rstrip())
        return rows

    def do_isr(self) -> list[str]:
        line = self._controller()
        for broker in self.stage.ids:
            leader = self.stage.replica(broker).leader
            if leader is not None and broker not in self.down:
                members = _set(sorted(leader.maximal_isr))
                line += f"\n{broker} commits with {_set(leader.isr)}, waits for {members}"
                if leader.under_min_isr:
                    line += f": fewer than {leader.effective_min_isr}, its HW stands still"
        return [line]


def stage() -> ReplicaTranscript:
    return ReplicaTranscript()
