"""Server benches: what `ciphervec bench server` and `bench faults` run."""
