"""Networks by name, and the one door to anybody's model: how it is asked, and how far it sees."""
