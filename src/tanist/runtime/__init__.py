"""The real outside world of a node: sockets, files, clocks and processes, behind the ports of `tanist.ports`."""
