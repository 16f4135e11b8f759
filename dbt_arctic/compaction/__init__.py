"""Compaction of keyed tables: decide from metadata, execute by the protocol."""
