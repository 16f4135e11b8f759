"""dbt's contract: what dbt asks of an adapter, answered with the engine, the catalog and the refreshes."""
