"""The workers of jobs."""
