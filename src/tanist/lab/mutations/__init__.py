"""Rules of the protocol, each switched off for the time of a test: how the lab shows what a rule is good for.

Nothing in the product knows of this package, and nothing but the lab and its commands may import it.
"""
