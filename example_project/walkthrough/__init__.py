"""The parts of the demo: dbt in this process, the stages, and the report about them."""
