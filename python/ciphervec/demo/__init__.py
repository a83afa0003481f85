"""A search over encrypted embeddings of the standard library's docstrings. Both sides run here."""
