"""The live view: what a cluster looks like at each moment, and the server that shows it (`tanist ui`).

`state` is the form of a sample, which knows neither files nor processes: a live cluster gives it, and so can the
simulator. `metadata_view` and `partition_positions` work it out of a metadata image and of replicas' positions, purely.
`folder_source` and `bootstrap_source` look at live clusters, `hub` reads for all pages together, `server` speaks HTTP.
"""
