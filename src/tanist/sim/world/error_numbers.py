"""The numbers of the virtual world's errors: Linux's, on every platform.

They are part of an error's text ("[Errno 5] ..."), which nodes report and the digest covers. The interpreter's own
`errno` has other numbers under WebAssembly and on other systems. None of these numbers makes `OSError` choose a
subclass there: an error with a subclass is raised as that subclass.
"""

from __future__ import annotations

from typing import Final

ENOENT: Final = 2
EIO: Final = 5
EBADF: Final = 9
EEXIST: Final = 17
EISDIR: Final = 21
ENOSPC: Final = 28
EADDRINUSE: Final = 98
