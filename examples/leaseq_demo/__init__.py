"""The demo: real workers count words, some are killed while they work, and the result is right all the same. `make demo` runs it."""
