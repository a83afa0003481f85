"""Demo: the standard library's docstrings enter, a search over their encrypted embeddings leaves.
Both sides run here."""
