"""Data outside the catalog as upstreams of models."""
