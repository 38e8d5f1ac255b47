"""One file for each way in which a layer combines messages."""
