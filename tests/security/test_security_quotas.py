"""Rates, buckets and whose quota counts, by hand and against a model that keeps every value."""

from __future__ import annotations

from math import floor, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tanist.security import quotas
from tanist.security.quotas import Limits, MutationThrottle, Rate, Throttle, TokenBucket, Windows

WINDOWS = Windows()


# -- a rate


def test_a_first_burst_counts_as_if_it_had_taken_ten_seconds() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, 5_000)
    assert rate.measure(5_000) == (1_000.0, 10_000)
    assert rate.throttle_ms(1_000.0, 5_000) == 0
    rate.record(1, 5_000)
    assert rate.throttle_ms(1_000.0, 5_000) == 1  # 0.1 above 1,000, over 10 s
    assert rate.throttle_ms(100.0, 5_000) == 90_010


def test_a_part_of_a_window_is_added_to_the_whole_ones() -> None:
    rate = Rate(WINDOWS)
    rate.record(1_000, 0)
    assert rate.measure(999) == (1_000 / 10.999, 10_999)
    assert rate.measure(1_000) == (100.0, 10_000)
    assert rate.measure(1_001) == (1_000 / 10.001, 10_001)


def test_a_sample_begins_with_its_first_value() -> None:
    rate = Rate(WINDOWS)
    rate.record(1, 700)
    rate.record(1, 1_699)  # still of the first: it is complete at 1,700
    rate.record(1, 1_900)  # begins the second, which ends at 2,900
    rate.record(1, 2_899)
    rate.record(1, 2_900)
    assert [sample[0] for sample in rate._samples] == [700, 1_900, 2_900]


def test_a_sample_goes_eleven_seconds_after_its_last_value() -> None:
    rate = Rate(WINDOWS)
    rate.record(100, 0)
    rate.record(100, 900)
    rate.record(7, 1_500)
    total, elapsed_ms = rate.measure(11_899)
    assert isclose(total * elapsed_ms / 1_000, 207)
    assert elapsed_ms == 11_899
    total, elapsed_ms = rate.measure(11_900)
    assert isclose(total * elapsed_ms / 1_000, 7)
    assert elapsed_ms == 10_400  # since 1,500


def test_after_a_long_silence_everything_begins_anew() -> None:
    rate = Rate(WINDOWS)
    for now_ms in range(0, 12_000, 1_000):
        rate.record(1, now_ms)
    assert rate.measure(100_000) == (0.0, 10_000)
    rate.record(50, 100_000)
    assert rate.measure(100_000) == (5.0, 10_000)


def test_a_rate_over_one_sample_takes_a_millisecond_at_least() -> None:
    rate = Rate(Windows(1, 1_000))
    rate.record(5, 10)
    assert rate.measure(10) == (5_000.0, 1)


class _Naive:
    """Every value with its time, and where each sample began."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.samples: list[tuple[int, list[tuple[int, float]]]] = []

    def record(self, value: float, now_ms: int) -> None:
        if not self.samples or now_ms - self.samples[-1][0] >= self.windows.sample_ms:
            self.samples.append((now_ms, []))
        self.samples[-1][1].append((now_ms, value))

    def measure(self, now_ms: int) -> tuple[float, int]:
        span_ms = self.windows.samples * self.windows.sample_ms
        live = [sample for sample in self.samples if now_ms - sample[1][-1][0] < span_ms]
        if len(live) < len(self.samples) and not live:
            self.samples = []
        start_ms = min([sample[0] for sample in live], default=now_ms)
        elapsed_ms = now_ms - start_ms
        whole = elapsed_ms // self.windows.sample_ms
        elapsed_ms = max(1, elapsed_ms + max(0, self.windows.samples - 1 - whole) * self.windows.sample_ms)
        return sum(value for _, values in live for _, value in values) * 1_000 / elapsed_ms, elapsed_ms


@given(
    st.lists(st.tuples(st.integers(0, 2_500), st.integers(1, 10_000)), min_size=1, max_size=120),
    st.sampled_from([Windows(), Windows(2, 1_000), Windows(1, 1_000), Windows(5, 3_000)]),
    st.integers(1, 5_000),
)
def test_a_rate_is_that_of_all_values(steps: list[tuple[int, int]], windows: Windows, bound: int) -> None:
    rate, naive, now_ms = Rate(windows), _Naive(windows), 1_000
    for pause_ms, value in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
        naive.record(value, now_ms)
        found, elapsed_ms = rate.measure(now_ms)
        expected, expected_ms = naive.measure(now_ms)
        assert elapsed_ms == expected_ms
        assert isclose(found, expected)
        expected_throttle = floor((found - bound) / bound * elapsed_ms + 0.5) if found > bound else 0
        assert rate.throttle_ms(bound, now_ms) == expected_throttle


# -- a bucket


def test_a_bucket_begins_full_and_owes_what_one_large_request_takes() -> None:
    assert TokenBucket(WINDOWS).tokens(2.0, 5) == 22.0  # however long the machine has been up
    bucket = TokenBucket(WINDOWS)
    assert bucket.tokens(2.0, 1_000_000) == 22.0
    bucket.take(30, 2.0, 1_000_000)
    assert bucket.tokens(2.0, 1_000_000) == -8.0
    assert bucket.throttle_ms(2.0, 1_000_000) == 4_000
    assert bucket.throttle_ms(2.0, 1_003_999) == 1
    assert bucket.throttle_ms(2.0, 1_004_000) == 0
    assert bucket.tokens(2.0, 1_100_000) == 22.0


def test_a_strict_request_is_refused_while_the_bucket_owes() -> None:
    throttle = MutationThrottle(WINDOWS)
    throttle.limits = Limits([((("user", "u"),), 1.0)])
    first = throttle.request("u", "a", 100_000, strict=True)
    assert first.take(5)
    assert first.take(20)
    assert first.throttle_ms == 0
    assert not first.take(1)
    assert first.throttle_ms == 14_000
    again = throttle.request("u", "b", 102_000, strict=True)  # all its client ids together
    assert not again.take(1)
    assert again.throttle_ms == 12_000
    other = throttle.request("someone", "a", 102_000, strict=True)
    assert other.take(1_000)
    assert other.throttle_ms == 0


def test_another_request_is_carried_out_and_throttled() -> None:
    throttle = MutationThrottle(WINDOWS)
    throttle.limits = Limits([((("user", "u"),), 1.0)])
    request = throttle.request("u", "a", 100_000, strict=False)
    assert request.take(11)
    assert request.throttle_ms == 0
    assert request.take(4)
    assert request.throttle_ms == 4_000
    assert request.take(4)
    assert request.throttle_ms == 8_000


# -- whose quota


def _limits(*entities: dict[str, str | None]) -> Limits:
    """Quotas of 1, 2, 3..."""
    return Limits((tuple(sorted(entity.items())), float(place)) for place, entity in enumerate(entities, 1))


LEVELS: list[dict[str, str | None]] = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]
COUNTERS = [("u", "c"), ("u", "c"), ("u", ""), ("u", "c"), ("u", "c"), ("u", ""), ("", "c"), ("", "c")]


@pytest.mark.parametrize("first", range(8))
def test_the_first_of_eight_levels_counts(first: int) -> None:
    limit = _limits(*LEVELS[first:]).of("u", "c")
    assert limit is not None
    assert (limit.bound, limit.counter) == (1.0, COUNTERS[first])


@given(st.sets(st.integers(0, 7)))
def test_any_set_of_levels(present: set[int]) -> None:
    limits = Limits((tuple(sorted(LEVELS[level].items())), float(level)) for level in present)
    limit = limits.of("u", "c")
    assert bool(limits) == bool(present)
    if present:
        assert limit is not None
        assert limit.bound == min(present)
        assert limit.counter == COUNTERS[min(present)]
    else:
        assert limit is None


def test_quotas_of_others_do_not_count() -> None:
    limits = _limits(
        {"user": "x"}, {"client-id": "x"}, {"user": "x", "client-id": "c"}, {"user": "u", "client-id": "x"}
    )
    assert limits.of("u", "c") is None
    assert limits.of("x", "y") == quotas.Limit(1.0, ("x", ""))


def test_a_client_without_an_id_has_the_quotas_of_users_only() -> None:
    assert _limits(*LEVELS[6:]).of("u", "") is None
    assert _limits(*LEVELS).of("u", "") == quotas.Limit(3.0, ("u", ""))
    assert _limits(*LEVELS[3:]).of("u", "") == quotas.Limit(3.0, ("u", ""))


# -- a throttle


def test_a_default_is_a_rule_for_each_and_not_a_counter_for_all() -> None:
    throttle = Throttle(WINDOWS)
    throttle.limits = _limits({"client-id": None})
    assert throttle.record("u", "a", 10, 0) == 0
    assert throttle.record("u", "b", 10, 0) == 0
    assert throttle.record("v", "a", 1, 0) == 1_000  # 11 in 10 s
    assert throttle.counters == 2


def test_a_new_value_counts_for_what_was_used_before() -> None:
    throttle = Throttle(WINDOWS)
    throttle.limits = Limits([((("user", "u"),), 100.0)])
    assert throttle.record("u", "", 1_000, 0) == 0
    throttle.limits = Limits([((("user", "u"),), 50.0)])
    assert throttle.record("u", "", 0, 0) == 10_000
    throttle.limits = Limits()
    assert not throttle.active
    assert throttle.record("u", "", 10**9, 0) == 0


def test_what_is_unrecorded_was_never_there() -> None:
    throttle = Throttle(WINDOWS)
    throttle.limits = Limits([((("user", "u"),), 100.0)])
    assert throttle.record("u", "", 2_000, 0) == 10_000
    throttle.unrecord("u", "", 2_000, 0)
    assert throttle.record("u", "", 1_000, 0) == 0
    assert throttle.most_at_once("u", "") == 1_000.0
    assert throttle.most_at_once("v", "") is None


def test_the_longest_pause() -> None:
    throttle = Throttle(WINDOWS, throttle_ms_max=1_000)
    throttle.limits = Limits([((("user", "u"),), 1.0)])
    assert throttle.record("u", "", 10_000, 0) == 1_000
    unbounded = Throttle(WINDOWS)
    unbounded.limits = throttle.limits
    assert unbounded.record("u", "", 10**12, 0) == 2**31 - 1  # an answer's field has no place for more


def test_counters_go_after_an_hour_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle = Throttle(WINDOWS)
    throttle.limits = _limits({"client-id": None})
    throttle.record("u", "a", 1, 0)
    throttle.record("u", "b", 1, 1)
    throttle.record("u", "a", 1, 2)
    throttle.record("u", "c", 1, quotas.IDLE_MS + 1)
    assert set(throttle._counters._counters) == {("", "a"), ("", "c")}
    monkeypatch.setattr(quotas, "COUNTERS_MAX", 2)
    throttle.record("u", "d", 1, quotas.IDLE_MS + 1)
    assert set(throttle._counters._counters) == {("", "c"), ("", "d")}


def test_the_limits_of_a_key() -> None:
    image: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {
        (("user", "u"),): {"producer_byte_rate": 5.0},
        (("client-id", None),): {"consumer_byte_rate": 6.0},
    }
    limit = quotas.limits_by_key(image, "producer_byte_rate").of("u", "c")
    assert limit is not None
    assert limit.bound == 5.0
    assert quotas.limits_by_key(image, "producer_byte_rate").of("v", "c") is None
    assert not quotas.limits_by_key(image, "request_percentage")
