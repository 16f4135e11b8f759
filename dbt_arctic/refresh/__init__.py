"""One run of one incremental model: look at versions, decide, execute, report.

The catalog and the way to run a statement are given as objects; this package imports neither
dbt nor pyspark.
"""
