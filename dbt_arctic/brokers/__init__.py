"""Message brokers as sources: what is in a topic, without Spark."""
