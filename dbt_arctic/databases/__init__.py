"""Relational databases as sources: what is in a table, without Spark."""
