"""The numbers of the virtual world's errors: Linux's, on every platform.

They are part of an error's text ("[Errno 5] ..."), which nodes report and the digest covers; the interpreter's own
`errno` has others under WebAssembly and on other systems. None of them is one that makes `OSError` choose a subclass
there: what has a subclass is raised as that.
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
