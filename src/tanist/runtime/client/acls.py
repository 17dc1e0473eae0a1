"""Access control entries of any Kafka cluster: read, added and removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tanist.client.acls import AclEntry, AclFilter, create_request, delete_request, describe_request, described
from tanist.runtime.client.changes import ask_once, carry_out, raise_first_error
from tanist.runtime.client.client import Client, KafkaError
from tanist.runtime.client.quorum import ask_controller
from tanist.text import counted
from tanist.wire.messages.create_acls_response import CreateAclsResponse
from tanist.wire.messages.delete_acls_response import DeleteAclsResponse
from tanist.wire.messages.describe_acls_response import DescribeAclsResponse


def describe_acls(client: Client, wanted: AclFilter) -> list[AclEntry]:
    """The entries that a filter means, in order. `KafkaError`, SECURITY_DISABLED without an authorizer."""
    request = describe_request(wanted)

    def attempt() -> list[AclEntry]:
        answer = client.ask(request, DescribeAclsResponse)
        if answer.error_code:
            raise KafkaError(answer.error_code, answer.error_message)
        return described(answer)

    return client.persist(attempt)


def create_acls(client: Client, entries: Iterable[AclEntry]) -> None:
    """Add entries; one that is there already stays as it is, so this is safe to ask for again. `KafkaError`."""
    request = create_request(entries)

    def attempt() -> None:
        answer = ask_controller(client, request, CreateAclsResponse, timeout_s=client.timeout_s)
        raise_first_error(answer.results)

    client.persist(attempt)


def delete_acls(client: Client, entries: Collection[AclEntry]) -> list[AclEntry]:
    """Remove entries that are exactly these, and give those that were there. `KafkaError`."""
    request = delete_request(each.alone for each in entries)
    wanted = set(entries)
    removed = [each for each in describe_acls(client, AclFilter()) if each in wanted]
    if not removed:
        return []

    def attempt(patience_s: float) -> list[AclEntry]:
        results = ask_once(client, request, DeleteAclsResponse, patience_s).filter_results
        raise_first_error(results)
        raise_first_error(each for result in results for each in result.matching_acls)
        return removed

    def find_result() -> list[AclEntry] | None:
        return removed if wanted.isdisjoint(describe_acls(client, AclFilter())) else None

    return carry_out(client, f"remove {counted(len(removed), 'ACL')}", attempt, find_result)
