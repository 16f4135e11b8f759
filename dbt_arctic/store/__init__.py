"""The stored state of keyed tables: generations, leases, branches, the view and its replacement."""
