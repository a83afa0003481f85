"""Runs the program as `python -m ciphervec`, for machines where scripts are not on the PATH."""

from .cli import main

main()
