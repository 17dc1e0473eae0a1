"""A node: the one interpreter of the core's effects, built from four ports.

`node.Node` owns everything here. Each file is one matter: connections, RPC channels, long polls, the hosted replicas,
fetchers, the broker's registration, the quorum, the controller; `api/` holds one file per API.
"""
