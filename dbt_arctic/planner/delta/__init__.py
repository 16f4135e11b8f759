"""From changed rows of upstreams to changed rows of a query."""
