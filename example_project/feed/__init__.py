"""The shop's source systems: what they hold, how they change, and how changes land in the lake.

Nothing here knows of dbt or of keyed tables: to the warehouse this is the outside world.
"""
