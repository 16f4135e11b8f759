"""What the demo is made of: dbt in this process, the stages, and what is told about them."""
