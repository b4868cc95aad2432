"""Vectors: for each script, keyspace, time and arguments, and what it must answer and leave behind."""
