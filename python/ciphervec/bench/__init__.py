"""A size enters, measured records leave: every mode beside a plaintext search of the same vectors in the same run."""
