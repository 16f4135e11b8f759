"""One run of one incremental model: read its settings, evolve the schema, write one commit."""
