"""What holds for a query's rows: keys, functional dependencies, determinism."""
