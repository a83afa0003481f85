"""Stores: sealed blobs enter in atomic commits and leave checked; queries enter, encrypted answers leave. Without a key.

`store` says what every store does and `server_backend` what answers; `folder` and `memory` are two stores of this process, the
third is in `ciphervec.http`. `copying` takes a collection from one to another.
"""
