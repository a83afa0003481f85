"""Papers' tables, as printed and as measured here. Nothing secret outlives a run."""
