"""Implements dbt's adapter interface with the engine, the catalog and the refreshes."""
