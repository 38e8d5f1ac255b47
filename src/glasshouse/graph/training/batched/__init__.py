"""Many GNNs trained in one pass: their weights stacked, their graphs side by side."""
