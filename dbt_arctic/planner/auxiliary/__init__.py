"""Auxiliary views: a refresh maintains them, and reads them instead of large tables."""
