"""Commands `ciphervec bench` and `ciphervec reproduce`, as `ciphervec.cli` looks them up."""
