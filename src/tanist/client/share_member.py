"""A member of a share group (KIP-932), as its coordinator sees it: a sequence of heartbeats.

As in the consumer protocol the coordinator assigns; a member gives up nothing first, because members share partitions.
What it fetches and says of records is between it and the partitions' leaders (`share_session`).
"""

from __future__ import annotations

from tanist.client.epoch_member import JOINING, LEAVING, EpochMember
from tanist.client.membership import Effects
from tanist.wire.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tanist.wire.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse


class ShareGroupMember(EpochMember):
    """A member of a share group."""

    ANSWER = ShareGroupHeartbeatResponse

    def _continue(self) -> Effects:
        says_all = self._says_all or not self.is_in
        yield from self._ask(self._heartbeat(self.settings.topics if says_all else None))

    def _heartbeat(self, topics: tuple[str, ...] | None) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.settings.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            subscribed_topic_names=topics,
        )

    def _heard(self, answer: ShareGroupHeartbeatResponse) -> Effects:
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            yield from self._assign(answer.assignment)
        yield from self._wait(answer.heartbeat_interval_ms)

    def _goodbye(self) -> Effects:
        self.epoch = LEAVING
        yield from self._ask(self._heartbeat(None))
        self.epoch = JOINING
