"""The state of a quorum node: its role, the table of roles, the rules, and the requests that are under way."""
