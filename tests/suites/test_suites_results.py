"""What is read from the runners' reports."""

from __future__ import annotations

import json

from tests.suites.results import Result, account, from_go, from_junit, from_librdkafka

JUNIT = """<testsuites><testsuite>
<testcase classname="test.test_group" name="test_passes"/>
<testcase classname="test.test_group" name="test_fails"><failure message="Error: no&#10;more lines"/></testcase>
<testcase classname="test.test_group" name="test_fails"><error message="failed on teardown"/></testcase>
<testcase classname="test.test_group" name="test_skipped"><skipped message="needs a moon"/></testcase>
<testcase classname="test.test_group" name="test_setup"><error message="">ValueError: late</error></testcase>
<testcase classname="test.test_group" name="test_teardown"/>
<testcase classname="test.test_group" name="test_teardown"><error message="failed on teardown"/></testcase>
</testsuite></testsuites>"""


def go(action: str, test: str | None, output: str | None = None) -> str:
    return json.dumps({"Action": action, "Package": "kgo", "Test": test, "Output": output})


def test_junit_counts_each_test_once_with_its_first_failure() -> None:
    assert from_junit(JUNIT) == [
        Result("test_group::test_passes", "passed"),
        Result("test_group::test_fails", "failed", "Error: no"),
        Result("test_group::test_skipped", "skipped", "needs a moon"),
        Result("test_group::test_setup", "failed", "ValueError: late"),
        Result("test_group::test_teardown", "failed", "failed on teardown"),
    ]


def test_go_tells_parts_and_not_the_whole_besides_them() -> None:
    lines = [
        "# a line of the compiler",
        go("run", "TestGroup"),
        go("run", "TestGroup/range"),
        go("run", "TestGroup/sticky"),
        go("output", "TestGroup/sticky", "[12:00:00 1] a line of the client's log\n"),
        go("output", "TestGroup/sticky", "    group_test.go:12: saw a double offset\n"),
        go("output", "TestGroup/sticky", "--- FAIL: TestGroup/sticky (1.00s)\n"),
        go("pass", "TestGroup/range"),
        go("fail", "TestGroup/sticky"),
        go("fail", "TestGroup"),
    ]
    assert from_go(lines) == [
        Result("TestGroup/range", "passed"),
        Result("TestGroup/sticky", "failed", "saw a double offset"),
    ]


def test_a_go_test_that_fails_beside_its_parts_is_reported() -> None:
    lines = [
        go("run", "TestGroup"),
        go("run", "TestGroup/range"),
        go("output", "TestGroup", "    group_test.go:12: nothing was cleaned up\n"),
        go("pass", "TestGroup/range"),
        go("fail", "TestGroup"),
    ]
    assert from_go(lines) == [
        Result("TestGroup", "failed", "nothing was cleaned up"),
        Result("TestGroup/range", "passed"),
    ]


def test_a_go_test_that_never_ended_has_failed() -> None:
    assert from_go([go("run", "TestTxnEtl"), go("output", "TestTxnEtl", "    txn_test.go:1: waits\n")]) == [
        Result("TestTxnEtl", "failed", "did not end in time")
    ]


RDKAFKA = """%7|noise of the client | PASSED
|\x1b[32m <MAIN>                                   |     PASSED |  12.345s \x1b[0m|
|\x1b[32m 0001_multiobj                            |     PASSED |   1.234s \x1b[0m|
|\x1b[31m 0081_admin                               |     FAILED |   9.000s \x1b[0m|\x1b[31m no\x1b[0m <-- known issue
|\x1b[36m 0126_oauthbearer_oidc                    |    SKIPPED |   0.000s \x1b[0m|\x1b[36m needs SASL\x1b[0m
|\x1b[35m 0142_reauthentication                    |    RUNNING |  61.000s \x1b[0m|
"""


def test_librdkafkas_summary() -> None:
    assert from_librdkafka(RDKAFKA) == [
        Result("0001_multiobj", "passed"),
        Result("0081_admin", "failed", "no <-- known issue"),
        Result("0126_oauthbearer_oidc", "skipped", "needs SASL"),
        Result("0142_reauthentication", "failed", "did not end in time"),
    ]


def test_what_librdkafkas_program_said_before_it_died() -> None:
    died = '\x1b[31m### Test "0097_ssl_verify (part)" failed at testcpp.h:77:() at Sun Nov 29: ###\nno key\nmore'
    assert from_librdkafka(died) == [Result("0097_ssl_verify", "failed", "no key")]


def test_the_account_tells_each_reason_and_the_counts() -> None:
    results = [
        Result("a", "passed"),
        Result("b", "failed", "no"),
        Result("c", "skipped", "moon"),
        Result("d", "passed"),
    ]
    assert account(results).splitlines() == [
        "skipped: c",
        "    moon",
        "failed: b",
        "    no",
        "2 passed, 1 failed, 1 skipped",
    ]


def test_a_long_reason_is_cut() -> None:
    (result,) = from_junit(f'<a><testcase classname="t" name="n"><failure message="{"x" * 1000}"/></testcase></a>')
    assert len(result.reason) == 240
