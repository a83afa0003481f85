"""Reproductions: a paper's tables enter as printed, the same tables measured here leave. Nothing
secret outlives a run."""
