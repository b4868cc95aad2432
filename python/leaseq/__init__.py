"""leaseq: a lease-based work queue on Redis and Valkey."""
