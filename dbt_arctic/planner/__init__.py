"""From a model's SQL and what changed to the keys that can have changed."""
