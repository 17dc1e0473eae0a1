"""The ports of `tanist.ports` with real sockets, files, clocks and threads."""
