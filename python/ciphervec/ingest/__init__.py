"""Checks what callers and files give: arrays, ids, records and filters."""
