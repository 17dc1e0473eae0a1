"""Compaction: the cleaner of a log and the offsets that it keeps."""
