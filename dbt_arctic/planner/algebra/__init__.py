"""Queries as trees of relational operators."""
