"""Ingest: what callers and files bring enters; arrays, ids, records and filters leave, checked.
Either side."""
