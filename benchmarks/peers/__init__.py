"""leaseq beside the libraries that people would otherwise take: `make bench-peers`, docs/benchmarks.md."""
