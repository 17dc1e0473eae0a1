"""Cycles of transactions, as Jepsen names them: over the order of their records, and over reading each other.

Owns the graph of transactions that were not aborted. An edge *wr* leads from a transaction to one that polled a record
of it, as read_committed. An edge *ww* leads from a transaction to the one whose record stands next in a partition; it
is inferred from offsets. Kafka's transactions do not isolate writes, so a cycle with ww edges is expected. A cycle of
wr edges alone cannot be: each would have been committed before the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tanist.lab.anomalies import Anomaly
from tanist.lab.history.citations import cite_claim, cite_send
from tanist.lab.history.partition import PartitionHistory
from tanist.lab.history.tally import Cite, Tally
from tanist.lab.history.transactions import Transactions

_SEARCHED_MAX = 64
"""Transactions of a cycle from which the shortest one is looked for."""


class Edge(NamedTuple):
    """Why a transaction comes before another one."""

    read: bool
    """wr; otherwise ww."""
    partition: PartitionHistory
    slot: int
    """The record that was polled, or that stands first."""
    next_slot: int = -1


Graph = dict[int, dict[int, Edge]]
"""Transaction -> those after it."""


def judge_dependencies(transactions: Transactions, partitions: Sequence[PartitionHistory], tally: Tally) -> None:
    """Add the cycles to the tally: one for each strongly connected part of the graph."""
    reads: Graph = {}
    writes: Graph = {}
    for partition in partitions:
        if partition.has_transactions:
            _read_edges(transactions, partition, reads)
            _write_edges(transactions, partition, writes)
    bad: set[int] = set()
    for component in components(reads):
        bad |= component
        _report(transactions, Anomaly.G1C, shortest(reads, component), tally, expected=False)
    for component in components(writes):
        _report(transactions, Anomaly.G0, shortest(writes, component), tally, expected=True)
    both = {each: {**writes.get(each, {}), **reads.get(each, {})} for each in writes.keys() | reads.keys()}
    for component in components(both):
        if component & bad:
            continue
        cycle = shortest(both, component, with_read=True)
        if cycle:
            _report(transactions, Anomaly.G1C, cycle, tally, expected=True)


def _writer(transactions: Transactions, partition: PartitionHistory, slot: int) -> int:
    """The transaction of a record, if it has one that was not aborted; otherwise 0."""
    row = partition.offsets.senders[slot] - 1
    transaction = partition.sends.transaction(row) if row >= 0 else 0
    return 0 if transactions.failed[transaction] else transaction


def _read_edges(transactions: Transactions, partition: PartitionHistory, graph: Graph) -> None:
    for reader, slot in zip(*partition.transactional_reads, strict=True):
        writer = _writer(transactions, partition, slot)
        if writer and writer != reader and not transactions.failed[reader]:
            graph.setdefault(writer, {}).setdefault(reader, Edge(True, partition, slot))


def _write_edges(transactions: Transactions, partition: PartitionHistory, graph: Graph) -> None:
    order = partition.offsets.in_order()
    before = before_slot = 0
    for place in range(len(order)):
        for _, slot in order.page(place):
            writer = _writer(transactions, partition, slot)
            if not writer:
                continue
            if before and before != writer:
                graph.setdefault(before, {}).setdefault(writer, Edge(False, partition, before_slot, slot))
            before, before_slot = writer, slot


def components(graph: Mapping[int, Collection[int]]) -> Iterator[set[int]]:
    """The strongly connected parts with more than one transaction (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in graph:
        if root in index:
            continue
        work: list[tuple[int, Iterator[int]]] = [_enter(root, graph, index, low, stack, on_stack)]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    work.append(_enter(successor, graph, index, low, stack, on_stack))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set(_popped(stack, on_stack, node))
                    if len(component) > 1:
                        yield component


def _enter(
    node: int,
    graph: Mapping[int, Collection[int]],
    index: dict[int, int],
    low: dict[int, int],
    stack: list[int],
    on_stack: set[int],
) -> tuple[int, Iterator[int]]:
    index[node] = low[node] = len(index)
    stack.append(node)
    on_stack.add(node)
    return node, iter(graph.get(node, ()))


def _popped(stack: list[int], on_stack: set[int], last: int) -> Iterator[int]:
    while True:
        node = stack.pop()
        on_stack.discard(node)
        yield node
        if node == last:
            return


def shortest(graph: Graph, component: set[int], *, with_read: bool = False) -> list[tuple[int, Edge]]:
    """The shortest cycle through some of the first transactions of a component: each with the edge to the next one.

    `with_read`: one that has a wr edge; empty if there is none.
    """
    best: list[tuple[int, Edge]] = []
    searched = 0
    for start in sorted(component):
        firsts = [
            (after, edge) for after, edge in graph[start].items() if after in component and (edge.read or not with_read)
        ]
        for after, edge in firsts:
            searched += 1
            path = _path(graph, component, after, start)
            if not best or len(path) + 1 < len(best):
                best = [(start, edge), *path]
            if len(best) == 2 or searched >= _SEARCHED_MAX:
                return best
    return best


def _path(graph: Graph, component: set[int], start: int, end: int) -> list[tuple[int, Edge]]:
    """The shortest way within a component: each transaction on it with the edge that it leaves by."""
    came: dict[int, tuple[int, Edge]] = {}
    waiting = deque([start])
    while end not in came:
        node = waiting.popleft()
        for after, edge in graph[node].items():
            if after in component and after not in came and after != start:
                came[after] = node, edge
                waiting.append(after)
    path: list[tuple[int, Edge]] = []
    node = end
    while node != start:
        node, edge = came[node]
        path.append((node, edge))
    return path[::-1]


def _report(
    transactions: Transactions, anomaly: Anomaly, cycle: Sequence[tuple[int, Edge]], tally: Tally, *, expected: bool
) -> None:
    followers = [transaction for transaction, _ in cycle[1:]] + [cycle[0][0]]
    cites = [
        cite
        for (_, edge), follower in zip(cycle, followers, strict=True)
        for cite in _cites(transactions, edge, follower)
    ]
    reads = sum(edge.read for _, edge in cycle)
    how = {0: "write before each other", len(cycle): "read each other's records"}.get(
        reads, "read each other's records or write before each other"
    )
    name = cycle[0][1].partition.name
    tally.add(anomaly, name, f"{len(cycle)} transactions {how}, in a cycle", *cites, expected=expected)


def _cites(transactions: Transactions, edge: Edge, follower: int) -> Iterable[Cite]:
    partition = edge.partition
    offsets = partition.offsets
    yield from (cite_send(partition, offsets.senders[edge.slot] - 1), cite_claim(partition, edge.slot))
    if edge.read:
        yield Cite((transactions.end_lines[follower],), partition.name, offsets.offset_of(edge.slot))
    else:
        row = offsets.senders[edge.next_slot] - 1
        yield from (cite_send(partition, row), cite_claim(partition, edge.next_slot))
