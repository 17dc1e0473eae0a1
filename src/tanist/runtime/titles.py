"""What `ps` and `top` show of our processes: forks of one launcher would all look like the launcher.

On Linux only. Elsewhere setproctitle needs system libraries that must not be used after a fork.
"""

from __future__ import annotations


def name_process(title: str, short: str) -> None:
    """`title` is for `ps`, which shows it in place of the command line; `short`, of 15 characters at most, for `top`.

    A process that cannot be named lives on under the name that it has.
    """
    try:
        from setproctitle import setproctitle
    except ImportError:
        pass
    else:
        setproctitle(title)
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(short)
    except OSError:
        return
