"""What is at an http or https address: the keys of tokens. It blocks, and is for a worker.

Takes no other kind of address, no more than a key set may have, and waits so long and no longer.
"""

from __future__ import annotations

from typing import Final

_BYTES_MAX: Final = 1 << 20
_PATIENCE_S: Final = 10.0


def read_url(url: str) -> bytes:
    """The body of an answer. `OSError` if there is none, or an error."""
    from http.client import HTTPException  # half a megabyte, for those who need it
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise OSError(f"{url} is no http or https address")
    try:
        with urlopen(Request(url, headers={"Accept": "application/json"}), timeout=_PATIENCE_S) as answer:
            found: bytes = answer.read(_BYTES_MAX + 1)
    except (HTTPException, ValueError) as error:
        raise OSError(str(error) or type(error).__name__) from None
    if len(found) > _BYTES_MAX:
        raise OSError(f"{url} has more than {_BYTES_MAX} bytes")
    return found
