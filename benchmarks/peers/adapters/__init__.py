"""What each library does in the benchmark: one program for each, run in that library's own environment."""
