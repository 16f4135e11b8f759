"""The keyed table: its names, versions, reads and commits, as values and SQL text.

Pure: imports neither dbt nor pyspark and never touches a catalog. What it is told
about snapshots comes in as values, what it wants done goes out as SQL text.
"""
