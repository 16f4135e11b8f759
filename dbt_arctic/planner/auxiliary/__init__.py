"""Auxiliary views, which a refresh maintains and reads instead of large tables."""
