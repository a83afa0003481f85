"""Lab: measurements, papers' tables measured again, and the demo. Only `ciphervec.cli` imports
it."""
