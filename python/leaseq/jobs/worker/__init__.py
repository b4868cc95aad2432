"""What runs jobs."""
