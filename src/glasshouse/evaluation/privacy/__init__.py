"""What attacks show about differential privacy: lower bounds on ε, with and without assumptions about the training."""
