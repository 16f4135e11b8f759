"""The front end: from SQL text to relational operators."""
