"""A large sound history, to measure the checker with.

    python -m tests.lab.history_large FILE --operations 10000000
    /usr/bin/time -v tanist lab verify FILE

Twelve partitions, sixteen producers, and a consumer for each partition: six sends to four polls of a record, and in the
end each consumer reads what is left and polls in vain. One line an operation.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

PARTITIONS = 12
PRODUCERS = 16


def lines(operations: int) -> Iterator[str]:
    """About so many: the assignments and the last polls come on top."""
    ends = [0] * PARTITIONS
    positions = [0] * PARTITIONS
    values: list[deque[str]] = [deque() for _ in range(PARTITIONS)]
    time_ns = 0

    def poll(partition: int, count: int) -> str:
        at = positions[partition]
        records = ",".join(f'[{at + n},"{values[partition].popleft()}"]' for n in range(count))
        positions[partition] += count
        reported = f'"records":{{"p-{partition}":[{records}]}},' if count else ""
        times = f'"invoked_ns":{time_ns},"time_ns":{time_ns + 5}'
        return f'{{"process":"c{partition}","type":"ok","f":"poll",{reported}{times}}}\n'

    for partition in range(PARTITIONS):
        yield (
            f'{{"process":"c{partition}","type":"ok","f":"assign","partitions":["p-{partition}"],'
            f'"positions":{{"p-{partition}":0}},"time_ns":0}}\n'
        )
    for number in range(operations):
        time_ns += 10
        if number % 10 < 6:
            partition, value = number % PARTITIONS, f"w{number % PRODUCERS}/{number}"
            values[partition].append(value)
            yield (
                f'{{"process":"w{number % PRODUCERS}","type":"ok","f":"send","partition":"p-{partition}",'
                f'"value":"{value}","offset":{ends[partition]},"invoked_ns":{time_ns},"time_ns":{time_ns + 5}}}\n'
            )
            ends[partition] += 1
        else:
            fullest = max(range(PARTITIONS), key=lambda each: len(values[each]))
            yield poll(fullest, 1)
    for partition in range(PARTITIONS):
        time_ns += 10
        yield poll(partition, len(values[partition]))
        time_ns += 10
        yield poll(partition, 0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.history_large", description=__doc__.split("\n\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--operations", type=int, default=10_000_000)
    chosen = parser.parse_args(arguments)
    with chosen.file.open("w") as file:
        file.writelines(lines(chosen.operations))


if __name__ == "__main__":
    main()
