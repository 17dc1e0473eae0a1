"""TLS as a node sees it: which listeners have it, by which properties, and whose certificates clients show."""
