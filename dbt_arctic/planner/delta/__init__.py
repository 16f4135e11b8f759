"""Delta propagation: from changed rows of upstreams to changed rows of a query."""
