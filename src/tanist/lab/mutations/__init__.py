"""Mutations: rules of the protocol, each broken for the time of a test, so that the lab shows the purpose of the rule.

The product does not know this package, and only the lab and its commands may import it.
"""
