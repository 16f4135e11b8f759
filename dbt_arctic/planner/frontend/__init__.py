"""From SQL text to relational operators."""
