"""Sidecar: requests of another vector store's clients enter, in the clear and on the application's own
machine; sealed collections of a server or a folder answer them. Key owner's side."""
