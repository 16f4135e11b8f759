"""How late models are, and which one to refresh next."""
