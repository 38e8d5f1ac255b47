"""What several attacks share: moments of in- and out-models, expected confidence, priors, small learners."""
