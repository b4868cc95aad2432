"""What a run is told as: a file of results, JUnit XML, one HTML page, a badge."""
