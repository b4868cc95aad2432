"""The adapters: one program for each library, run in the environment of that library."""
