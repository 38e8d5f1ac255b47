"""Networks by name, and the one place where any model is asked: how it is called, and how far it sees."""
