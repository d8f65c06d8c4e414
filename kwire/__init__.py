"""Reads and writes the Kafka wire protocol."""
