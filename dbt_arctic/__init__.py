"""dbt-arctic: keyed lakehouse tables on Apache Spark and Apache Iceberg, for dbt."""
