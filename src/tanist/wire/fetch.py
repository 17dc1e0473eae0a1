"""Fetch, by hand: the names that others import.

Requests are in `fetch_request`, what a leader answers in `fetch_response`, what a follower reads in `fetch_reply`.
"""

from tanist.wire.fast_path import NodeEndpoint
from tanist.wire.fetch_reply import FetchReply, parse_fetch_response
from tanist.wire.fetch_request import (
    END_OF_PLAN,
    REST_OF_PLAN,
    FetchCall,
    FetchPlan,
    FetchTarget,
    encode_fetch_request,
    parse_fetch,
    plan_fetch,
)
from tanist.wire.fetch_response import FetchedPartition, encode_fetch_response, encode_fetched

__all__ = [
    "END_OF_PLAN",
    "REST_OF_PLAN",
    "FetchCall",
    "FetchPlan",
    "FetchReply",
    "FetchTarget",
    "FetchedPartition",
    "NodeEndpoint",
    "encode_fetch_request",
    "encode_fetch_response",
    "encode_fetched",
    "parse_fetch",
    "parse_fetch_response",
    "plan_fetch",
]
