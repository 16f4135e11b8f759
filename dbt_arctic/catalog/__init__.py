"""Iceberg metadata without a Spark job: listing, versions, columns, file metrics."""
