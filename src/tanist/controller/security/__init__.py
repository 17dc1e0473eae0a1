"""Security in the metadata log: what changes credentials, and what records say about them."""
