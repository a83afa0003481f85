"""A differential fuzzer over the public API: random operations beside NumPy and a dictionary. What it needs of
pandas and pyarrow it leaves out where they are not installed."""
