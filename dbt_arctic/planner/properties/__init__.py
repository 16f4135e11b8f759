"""Properties of a query's rows: unique keys, functional dependencies, determinism."""
