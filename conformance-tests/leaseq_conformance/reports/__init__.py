"""Reports of a run: a file of results, JUnit XML, one HTML page, a badge."""
