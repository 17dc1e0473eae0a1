"""Security in the metadata log: what changes credentials and access control lists, and what records say about them."""
