"""The keyed table: its names, versions, reads and commits, as values and SQL text.

Pure: imports neither dbt nor pyspark and never accesses a catalog. Snapshots are passed in as values, and the
results are SQL text.
"""
