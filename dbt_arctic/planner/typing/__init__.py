"""Types of columns and expressions, as far as the text of a query determines them."""
