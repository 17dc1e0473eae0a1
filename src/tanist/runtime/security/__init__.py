"""Certificates and keys of a running node: stores, profiles, and their exchange. Only a node with TLS loads it."""
