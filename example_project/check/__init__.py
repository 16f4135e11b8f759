"""Compares every model with what a full rebuild gives, on another engine and from the feed's own files.

Nothing here reads the warehouse's storage or knows how a model is refreshed.
"""
