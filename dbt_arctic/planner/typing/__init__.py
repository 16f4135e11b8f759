"""Types of columns and expressions, as far as a query's text tells."""
