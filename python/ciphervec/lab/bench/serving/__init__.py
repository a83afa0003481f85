"""What `ciphervec bench server` and `bench faults` run."""
