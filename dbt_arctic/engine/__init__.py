"""A Spark to run SQL on. Knows nothing of dbt, of catalogs' contents or of keyed tables."""
