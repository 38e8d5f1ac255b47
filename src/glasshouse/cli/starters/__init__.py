"""What ``glasshouse new`` writes: files that run as they stand, one for each kind of model."""
