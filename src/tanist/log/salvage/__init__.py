"""Records that a truncation removes: kept in a quarantine with a manifest, and read back."""
