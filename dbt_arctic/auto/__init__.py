"""Automatic models: from what changed upstream to one incremental refresh."""
