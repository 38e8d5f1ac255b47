"""Many GNNs trained in one pass: their weights batched, their graphs side by side."""
