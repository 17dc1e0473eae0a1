"""The server: what it streams, what it refuses, and that it samples only while somebody reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tanist.runtime.cluster.cluster_file import ClusterError
from tanist.runtime.cluster.processes import wait_until
from tanist.web.hub import History, Hub
from tanist.web.state import Difference
from tests.web.web_rig import FakeSource, Served, served


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def server(source: FakeSource) -> Iterator[Served]:
    with served(source) as found:
        yield found


def test_the_page_is_there_and_may_load_nothing_from_elsewhere(server: Served) -> None:
    status, headers, body = server.ask("GET", "/")
    assert status == 200
    assert b"/assets/app.js" in body
    assert b"http://" not in body.replace(b"http://www.w3.org", b"")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    for path in ("/assets/app.js", "/assets/app.css", "/icon.svg"):
        assert server.ask("GET", path)[0] == 200
    assert server.ask("GET", "/../pyproject.toml")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "127.0.0.1:1"])
def test_another_host_name_is_refused(server: Served, host: str) -> None:
    for path in ("/", "/api/events", "/api/salvage?topic=a&partition=0"):
        assert server.ask("GET", path, Host=host)[0] == 421


def test_a_change_needs_the_token_and_our_own_origin(server: Served, source: FakeSource) -> None:
    crash = {"action": "crash", "node": 1}
    assert server.ask("POST", "/api/act", crash, token=False)[0] == 403
    assert server.ask("POST", "/api/act", crash, token=False, **{"X-Tanist-Token": "wrong"})[0] == 403
    assert server.ask("POST", "/api/act", crash, Origin="http://evil.example")[0] == 403
    assert source.acts == []
    assert server.ask("POST", "/api/act", crash, Origin=f"http://{server.host}")[0] == 200
    assert server.ask("POST", "/api/act", {"action": "heal", "node": None})[0] == 200
    assert source.acts == [("crash", 1), ("heal", None)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/act", {}),
        ("/api/act", {"action": "crash", "node": "1"}),
        ("/api/act", {"action": "crash", "node": True}),
        ("/api/act", []),
        ("/api/watch", {"page": "x"}),
        ("/api/watch", {"page": "x", "partitions": [["t"]]}),
        ("/api/watch", {"page": "x", "partitions": [["../t", 0]]}),
        ("/api/watch", {"page": "x", "partitions": [["t", -1]]}),
        ("/api/act", {"action": "c" * 100_000, "node": 1}),
    ],
)
def test_nonsense_is_a_bad_request(server: Served, source: FakeSource, path: str, body: object) -> None:
    assert server.ask("POST", path, body)[0] == 400
    assert source.acts == []


def test_what_cannot_be_done_is_said(server: Served) -> None:
    status, _, body = server.ask("POST", "/api/act", {"action": "nonsense", "node": 1})
    assert (status, body) == (409, b"""{"error":"there is no fault 'nonsense' here"}""")
    assert server.ask("GET", "/api/price?action=crash&node=x")[0] == 400
    assert server.ask("GET", "/api/price?action=crash&node=2")[2] == b'{"lines":["crash 2"],"destroys":0}'


def test_a_page_gets_the_state_and_then_what_changes(server: Served, source: FakeSource) -> None:
    source.state["p/t/0"] = {"leader": 1}
    source.state["p/t/1"] = {"leader": 2}
    with server.events() as following:
        name, begin = following()
        assert name == "begin"
        page = begin["page"]
        name, change = following()
        assert (name, change["set"]["p/t/0"], change["gone"]) == ("change", {"leader": 1}, [])
        source.state["p/t/0"] = {"leader": 3}
        del source.state["p/t/1"]
        name, change = following()
        assert (name, change["set"], change["gone"]) == ("change", {"p/t/0": {"leader": 3}}, ["p/t/1"])

        assert server.ask("POST", "/api/watch", {"page": page, "partitions": [["t", 0]]}, token=False)[0] == 204
        assert server.ask("POST", "/api/watch", {"page": "another", "partitions": []})[0] == 404
        source.broken = ClusterError("the folder is gone")
        _, change = following()
        assert change["set"]["cluster"]["problem"] == "the folder is gone"
        assert [("t", 0)] in source.watched
        # A second page sees the same past.
        with server.events() as also:
            _, begin = also()
            assert begin["state"]["p/t/1"] == {"leader": 2}
            assert [each["set"].get("p/t/0") for each in begin["later"]] == [{"leader": 3}, None]


def test_nobody_looks_without_a_page(server: Served, source: FakeSource) -> None:
    assert not server.hub.polling
    assert source.reads == 0
    with server.events() as following:
        following()
        following()
        assert server.hub.polling
    assert wait_until(lambda: not server.hub.polling, 120)
    with server.events() as following:
        following()
        assert server.hub.polling


def test_nothing_of_the_looking_is_left_when_the_last_page_goes(source: FakeSource) -> None:
    async def two_pages() -> None:
        hub = Hub(source, every_s=0.01)
        before = asyncio.all_tasks()
        first, second = hub.connect(), hub.connect()
        await anext(first)
        await anext(second)
        await first.aclose()
        assert hub.polling
        while source.reads < 3:
            await asyncio.sleep(0)
        await second.aclose()
        assert not hub.polling
        tasks = asyncio.all_tasks() - before
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks)
        hub.close()

    asyncio.run(asyncio.wait_for(two_pages(), 120))


def test_the_history_has_a_bound_and_its_oldest_becomes_its_beginning() -> None:
    history = History()
    history.add(Difference(1, {"a": 0, "b": 0}), 10)
    for at in range(2, 5_000):
        history.add(Difference(at, {"a": at}, ("b",) if at == 2 else ()), 10)
    assert len(history.later) == 1_800
    assert history.base == {"a": history.base_ms}
    assert history.size_bytes == 18_000
    history.add(Difference(6_000, {"a": "large"}), 9 << 20)
    assert len(history.later) == 1
    assert history.base == {"a": 4_999}


def test_ten_thousand_partitions_come_in_pieces_and_as_one_state(server: Served, source: FakeSource) -> None:
    wide = {f'p/a "topic"/{each}': {"leader": each % 3, "why": "line\nbreak\u2028"} for each in range(10_000)}
    source.state |= wide
    with server.events() as following:
        _, begin = following()
        assert (begin["state"], begin["later"]) == ({}, [])
        _, change = following()
        assert {key: each for key, each in change["set"].items() if key.startswith("p/")} == wide
        source.state["p/b/0"] = {"leader": 1}
        following()
        with server.events() as also:
            _, begin = also()
            assert {key: each for key, each in begin["state"].items() if key.startswith("p/")} == wide
            assert [each["set"] for each in begin["later"]] == [{"p/b/0": {"leader": 1}}]


def test_a_cluster_that_was_never_seen_has_the_form_of_one(server: Served, source: FakeSource) -> None:
    source.broken = ClusterError("127.0.0.1:1: Connection refused")
    with server.events() as following:
        following()
        _, change = following()
        cluster = change["set"]["cluster"]
        assert cluster["problem"] == "127.0.0.1:1: Connection refused"
        assert (cluster["nodes"], cluster["faults"], cluster["actions"], cluster["absent"]) == ([], [], [], [])
