"""The entry point of `tanist`. A node is started without loading the command line's libraries: every start counts."""

from __future__ import annotations

import sys

from tanist.cli import closed_output


def main() -> None:
    arguments = sys.argv[1:]
    with closed_output.quietly():
        if arguments[:1] == ["serve"] and not {"--help", "-h"} & set(arguments):
            from tanist.runtime.process.serve import main as serve

            raise SystemExit(serve(arguments[1:]))
        from tanist.cli.app import app

        app(prog_name="tanist")


if __name__ == "__main__":
    main()
