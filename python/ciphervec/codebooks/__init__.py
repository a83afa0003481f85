"""Codebooks and how they are learned, where the embedding matrix is, before any encryption."""
