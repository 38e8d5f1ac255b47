"""What every room uses: array types, errors that a user reads, log-space maths, one seed, registries, progress."""
