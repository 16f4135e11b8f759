"""Spark SQL as text: its dialect, its functions, and where sqlglot reads it differently."""
