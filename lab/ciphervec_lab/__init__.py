"""What measures ciphervec: benches, faults, and papers' tables measured again. `ciphervec bench` and `ciphervec
reproduce` import it, where it is installed, and nothing else of ciphervec does."""
