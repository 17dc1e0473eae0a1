"""A change of a cluster, asked for so that it is carried out once, and what became of it is known.

Owns what to do about an answer that is lost: a change that may be under way is not asked for again before somebody has
looked whether it is there. A repeat would be refused because of the first request ("the topic exists"), and that
refusal would be passed on as what became of the change. A request that is safe to repeat does not need this:
`Client.persist` does it.

Three things leave the outcome open: no answer within the time that the request itself gives the controller, a
connection that ends under way, and a retriable error such as NOT_CONTROLLER, which also comes from a controller that
has written the records and loses its leadership before they are committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from tanist.runtime.client.client import Client, KafkaError, OutcomeUnknown, Unanswered, Unreachable
from tanist.runtime.client.connection import NobodyToAsk
from tanist.runtime.client.quorum import ask_controller
from tanist.wire.schema import Request

T = TypeVar("T")

ANSWER_MARGIN_S = 10.0
"""How much longer than a request's `timeout_ms` its answer is waited for: the broker waits a little longer, too."""
_PAUSE_S = 0.1


def ask_once(client: Client, request: Request, answer: type[T], patience_s: float) -> T:
    """Have the controller decide a request whose `timeout_ms` is `patience_s`, once. `Unanswered` if it may be under
    way.
    """
    return ask_controller(client, request, answer, timeout_s=patience_s + ANSWER_MARGIN_S, once=True)


def raise_first_error(results: Iterable[Any]) -> None:
    """`KafkaError` of the first result in an answer that has one."""
    for result in results:
        if result.error_code:
            raise KafkaError(result.error_code, result.error_message)


def carry_out(
    client: Client,
    what: str,
    attempt: Callable[[float], T],
    find_result: Callable[[], T | None],
    *,
    already: Collection[int] = (),
    patience_s: float | None = None,
) -> T:
    """Have a change made, and give its result.

    `attempt` sends one request, which may take so many seconds. `find_result` gives the result if the change is there,
    None if it is not, and raises `KafkaError` if something else is there; it is called before the first request as
    well, because what was there before is not the change. `already` are the codes by which a repeated request is
    refused because the first one was carried out. `what` names the change: "create topic t".

    `KafkaError` for a refusal, `Unreachable` or `NobodyToAsk` if nothing was asked, `OutcomeUnknown` if nobody says
    what became of it.
    """
    patience_s = client.timeout_s if patience_s is None else patience_s
    began = time.monotonic()
    deadline = began + patience_s  # of the look before it as well: without a coordinator that takes all of it
    if _is_there(find_result):
        return client.persist(lambda: attempt(patience_s), timeout_s=patience_s)  # a refusal is meant as it is said
    lost: Exception | None = None  # the first trouble since which a request may be under way
    asking, refused = True, False
    while True:
        try:
            if asking:
                return attempt(max(1.0, deadline - time.monotonic()))
            found = find_result()
            if found is not None:
                return found
            trouble: Exception = lost or Unreachable("it is not to be seen")
            asking = not refused
        except Unreachable as error:
            trouble = error
            if asking and isinstance(error, Unanswered):
                if lost is None:
                    deadline = time.monotonic() + patience_s
                lost, asking = error, False
        except KafkaError as error:
            trouble = error
            if asking and lost is not None and error.code in already:
                refused, asking = True, False  # by the first request, or by something else in its place: ask which
            elif not error.retriable:
                raise
            elif asking and not isinstance(error, NobodyToAsk):
                lost, asking = lost or error, False
        if time.monotonic() + _PAUSE_S > client.patient_until(began, deadline):
            if lost is None:
                raise trouble
            raise OutcomeUnknown(what, str(trouble))
        client.waits_since(began)
        time.sleep(_PAUSE_S)


def _is_there(find_result: Callable[[], object | None]) -> bool:
    try:
        return find_result() is not None
    except KafkaError as error:
        return not error.retriable
    except Unreachable:
        return False
