"""Benches: a size enters, measured records leave: searches beside a plaintext one, the Paillier
family beside its peers, in one run."""
