"""Records that a truncation removes: kept beside the log, described by a manifest, read back."""
