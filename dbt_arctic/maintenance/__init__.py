"""Looking after keyed tables: what is wrong with them, what may go, what they were.

It decides on metadata as values and writes through an ``Context``. It knows neither dbt nor a terminal.
"""
