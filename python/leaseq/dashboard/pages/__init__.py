"""The pages: each is a function that answers one visit."""
