"""Kafka's names of requests, those included that tanist does not have: only for what is printed."""

from __future__ import annotations

from tanist.wire.apis import ApiKey

_WITHOUT_MESSAGES = {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    17: "SaslHandshake",
    30: "CreateAcls",
    31: "DeleteAcls",
    36: "SaslAuthenticate",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    49: "AlterClientQuotas",
    51: "AlterUserScramCredentials",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}


def api_name(key: int) -> str:
    """The name of a request."""
    if key in _WITHOUT_MESSAGES:
        return _WITHOUT_MESSAGES[key]
    try:
        return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
    except ValueError:
        return f"request {key}"
