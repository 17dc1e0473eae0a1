"""Files and folders that were renamed for deletion: removed after `file.delete.delay.ms`, off the loop."""

from __future__ import annotations

from collections.abc import Iterable

from tanist.broker.context import NodeContext
from tanist.events.storage import FilesNotDeleted


class Deletions:
    """Removes what logs have given up."""

    __slots__ = ("_context",)

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    def schedule(self, paths: Iterable[str]) -> None:
        """Remove the files or folders once the delay is over. One that cannot be removed is reported."""
        context, removals = self._context, list(paths)
        if not removals:
            return

        def remove_all() -> None:
            for path in removals:
                context.disk.remove(path)

        def remove() -> None:
            context.disk.run(remove_all, removed)

        def removed(result: object) -> None:
            context.unexpected.met_by_job("a deletion", result)
            if isinstance(result, BaseException):
                context.events.emit(FilesNotDeleted(tuple(removals), str(result)))

        context.clock.call_at(context.clock.now_ms() + context.config.log_segment_delete_delay_ms, remove)
