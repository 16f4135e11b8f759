"""Loading a Kafka topic: the speed compared with other products, and how current a kept table is."""
