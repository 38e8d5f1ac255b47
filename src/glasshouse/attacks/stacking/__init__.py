"""What the stacked attacks are made of: simulated targets, their features, and a learner that never sees the target."""
