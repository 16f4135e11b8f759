"""The planner: finds the keys of a model's result that may have changed, from its SQL and the changes."""
