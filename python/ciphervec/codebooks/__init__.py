"""Codebooks and how they are learned: a matrix enters, codes and tables leave. Runs where the
matrix is, before any encryption."""
