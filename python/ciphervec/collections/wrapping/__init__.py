"""Wrapped key files, for key owners: a file's own key is wrapped by a KMS, an HSM, a keyring or age, whom the file names.
The master key passes through none of them, nor through Python. Every service is an extra, imported when a file names it."""

from .files import Rewrapped, load, named_file, rewrap, save
from .holders import SCHEMES, holder

__all__ = ["SCHEMES", "Rewrapped", "holder", "load", "named_file", "rewrap", "save"]
