"""Tables of the user's own: from cells of text to numbers that every model takes."""
