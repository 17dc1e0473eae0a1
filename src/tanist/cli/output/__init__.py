"""Forms of output: tables, progress, alerts, a topic's description. Nothing here asks a cluster."""
