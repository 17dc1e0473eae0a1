"""A node: the one interpreter of the core's effects, built from four ports.

`node.Node` starts and stops the parts, `parts` makes and wires them. Each part gets by its constructor the context and
the parts that it calls; `api/` has one module for each API.
"""
