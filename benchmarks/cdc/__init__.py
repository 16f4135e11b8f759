"""Following a PostgreSQL database: initial load, changes per second, and runs without changes."""
