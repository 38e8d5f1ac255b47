"""Files: one guarded reader per kind, limits judged first, and files and folders that are complete or absent."""
