"""Benches: searches beside a plaintext one, and the Paillier family beside its peers, in one run."""
