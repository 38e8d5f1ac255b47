"""The calls: an audit from data to a result, its steps, several targets, and tracking."""
