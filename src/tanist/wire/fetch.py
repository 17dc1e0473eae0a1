"""Fetch (key 1), versions 4-18, written by hand: the names for importers.

Requests are in `fetch_request`, the common part of a consumer's in `fetch_plan`, a leader's responses in
`fetch_response`, a follower's reading of them in `fetch_reply`.
"""

from tanist.wire.fast_path import NodeEndpoint
from tanist.wire.fetch_plan import END_OF_PLAN, REST_OF_PLAN, FetchPlan, plan_fetch
from tanist.wire.fetch_reply import FetchReply, parse_fetch_response
from tanist.wire.fetch_request import FetchCall, FetchTarget, encode_fetch_request, parse_fetch
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
