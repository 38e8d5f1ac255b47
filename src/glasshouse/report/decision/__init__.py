"""What a run says: the rating, the verdict in sentences, the first page and what to do next."""
