"""`python -m ciphervec` enters, the program runs: for machines where scripts are not on the
PATH."""

from .cli import main

main()
