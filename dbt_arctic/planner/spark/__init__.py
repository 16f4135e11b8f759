"""Spark SQL as text: its dialect, its functions, and what sqlglot reads otherwise."""
