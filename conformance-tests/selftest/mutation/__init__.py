"""Mechanical mutants of the scripts: one small edit each, none of them chosen."""
