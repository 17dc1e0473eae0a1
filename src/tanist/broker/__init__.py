"""A node: the one interpreter of the core's effects, built from four ports.

`node.Node` starts and stops the components, `components` makes and wires them. Each component gets by its constructor
the context and the components that it calls; `api/` has one module for each API.
"""
