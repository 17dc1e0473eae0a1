"""Decisions about who may do what: they become records, as all others."""
