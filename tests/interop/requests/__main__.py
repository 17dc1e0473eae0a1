"""`python -m tests.interop.requests --draw 100 [--steps 40]`: random requests to a node of Apache Kafka and to ours.

Each sequence has topics, groups and transactions of its own. Both nodes are asked the same, one after the other, and
their answers are compared field by field. A difference is played again under other names, and shortened. Exit code 1 if
one is left that `known.py` does not explain.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import SystemRandom

from tanist.wire.apis import request_class
from tanist.wire.messages.api_versions_request import ApiVersionsRequest
from tanist.wire.messages.api_versions_response import ApiVersionsResponse
from tests.interop.cluster import interrupt_on_sigterm
from tests.interop.pair import Asker, Pair, pair
from tests.interop.requests.drawing import WEIGHTS
from tests.interop.requests.sequence import Difference, Step, drawn, play, shown

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


def common_versions(nodes: Pair) -> dict[int, tuple[int, int]]:
    """By key, the versions that both brokers serve. (Both say Produce 0 to 2 for old librdkafka's sake, and refuse it.)"""
    tables = []
    for address in (nodes.apache, nodes.tanist):
        with Asker(address) as asker:
            answer = asker.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3, ApiVersionsResponse)
        tables.append({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})
    tables.append({key: request_class(key).VERSIONS for key in WEIGHTS})
    return {
        key: (max(each[key][0] for each in tables), min(each[key][1] for each in tables))
        for key in WEIGHTS
        if all(key in each for each in tables)
    }


class Player:
    def __init__(self, nodes: Pair) -> None:
        self._sides = nodes.apache, nodes.tanist
        self.versions = common_versions(nodes)
        self.asked: Counter[str] = Counter()

    def play(self, steps: list[Step], *, count: bool = False, to_the_end: bool = False) -> list[Difference]:
        prefix = f"s{time.time_ns():x}-"
        return play(self._sides, prefix, steps, self.asked if count else None, to_the_end=to_the_end)

    def shortened(self, steps: list[Step], wanted: Difference) -> list[Step] | None:
        """The fewest steps with this difference; None if it does not come again."""

        def differs(tried: list[Step]) -> bool:
            found = self.play(tried)
            return bool(found) and found[-1].shape == wanted.shape and found[-1].reason is None

        steps = steps[: wanted.step + 1]
        if not differs(steps):
            return None
        for number in range(len(steps) - 2, -1, -1):
            tried = steps[:number] + steps[number + 1 :]
            if differs(tried):
                steps = tried
        return steps


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.interop.requests", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draw", type=int, default=20, metavar="N", help="fresh sequences; the first line names them")
    parser.add_argument("--seeds", metavar="A..B", help="play these instead")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument(
        "--survey", action="store_true", help="go on after differences, and print one of each kind; later ones may follow"
    )
    options = parser.parse_args()
    interrupt_on_sigterm()
    first = SystemRandom().randrange(1 << 40)
    seeds = range(first, first + options.draw)
    if options.seeds:
        begin, _, end = options.seeds.partition("..")
        seeds = range(int(begin), int(end or begin) + 1)
    print(f"seeds {seeds[0]}..{seeds[-1]}", flush=True)
    red = unsteady = 0
    reasons: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="requests-") as folder, pair(Path(folder), PROPERTIES) as nodes:
        player = Player(nodes)
        for seed in seeds:
            steps = drawn(seed, options.steps, player.versions)
            found = player.play(steps, count=True, to_the_end=options.survey)
            reasons.update(each.reason for each in found if each.reason is not None)
            if options.survey:
                for each in found:
                    if each.kind not in kinds:
                        print(f"seed {seed}, step {each.step}: {each}\n    {each.kind}", flush=True)
                kinds.update(each.kind for each in found)
                continue
            if not found or found[-1].reason is not None:
                continue
            short = player.shortened(steps, found[-1])
            if short is None:
                unsteady += 1
                print(f"seed {seed}: not a second time: {found[-1]}", flush=True)
                continue
            red += 1
            print(f"seed {seed}, step {found[-1].step}: {found[-1]}\n{shown(short)}", flush=True)
    print(f"{len(seeds)} sequences, {player.asked.total()} requests: {dict(sorted(player.asked.items()))}")
    for reason, number in reasons.most_common():
        print(f"  {number:5} x {reason}")
    for kind, number in kinds.most_common():
        print(f"  {number:5} x {kind}")
    print(f"{red} sequences with a difference that nothing explains, {unsteady} with one that did not come again")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
