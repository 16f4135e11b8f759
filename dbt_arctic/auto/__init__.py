"""Automatic models: from the changes of upstreams to one incremental refresh."""
