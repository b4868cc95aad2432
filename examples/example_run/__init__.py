"""The start and the end of an example: its server, its programs, its command."""
