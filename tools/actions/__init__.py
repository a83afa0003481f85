"""What the steps do, by what they work on; `tools/steps.py` lists them. Standard library only: they run on a bare machine."""
