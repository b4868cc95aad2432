"""The migrations of the project."""
