"""Wording of errors, for the command line: the library's texts name Python's arguments, these the options and
commands."""

from __future__ import annotations

import re

_WORDS: list[tuple[str, str]] = [
    (
        r"Make them with (keys = ciphervec\.)?Keys\.generate\(\), keep them .*, and pass (keys=keys|them to the Client)",
        "Name their file with --keys my.key; a new one comes from: ciphervec keygen my.key",
    ),
    (r"Use upsert to replace it, or update to change it", "Pass --upsert to replace it"),
    (r"look for its ids, or upsert", "look for its ids, or pass --upsert"),
    (
        r"Use create_collection to make a collection, or a token",
        "Make it with: ciphervec create; or use a token",
    ),
    (r"Use create_collection to make it", "Make it with: ciphervec create"),
    (r"Use get_collection, get_or_create_collection, or another name", "Choose another name"),
    (
        r"Open it with get_collection, or choose another name",
        "Choose another name",
    ),
    (r"to drop everything use delete_collection", "to drop everything: ciphervec drop"),
    (r"(call )?delete_collection, and restore", "ciphervec drop, and restore"),
    (r"pass allow_open=True, or open it without keys", "leave --keys and CIPHERVEC_KEYS out"),
    (r"a query with skip_quarantined=True", "query --skip-quarantined"),
    (r"use them as they are with release\(\)", "use them as they are with collection.release(id) in Python"),
    (r"Pass token=\.\.\.", "Give --token-file"),
    (r"[Pp]ass (the )?token=\.\.\.", "give --token-file"),
    (r"token=\.\.\.", "--token-file"),
    (r"ca='its\.pem'", "--ca its.pem"),
    (r"(Pass|pass|say|Say) insecure=True", r"pass --insecure"),
    (r"insecure=True", "--insecure"),
    (r"Load them with ciphervec\.Keys\.load\(path, passphrase=\.\.\.\)", "Name the key file with --keys"),
    (r"[^.:;]*Keys\.load\(path, passphrase=\.\.\.\)[^.]*\.", " Name the key file with --keys."),
    (r"client\.accept_restore\('[^']*'\), or ciphervec accept-restore", "ciphervec accept-restore"),
    (r"allow more timeout=\.\.\.", "with less at once"),
    (r"ask for a key in clear with allow_plaintext=True", "pass --no-passphrase"),
    (
        r"load the file without a passphrase",
        "leave --passphrase-file out, and give another file's passphrase in CIPHERVEC_PASSPHRASE",
    ),
    (r"fusion='(\w+)'", r"--fusion \1"),
    (r"leave query_embeddings=\.\.\. out", "leave the vectors out"),
    (r"on_zero='skip'", "--on-zero skip"),
    (r"audience='(\w+)'", r"--audience \1"),
    (r"info\(\)\['\w+'\]", "ciphervec doctor"),
    (r"info\(\)", "ciphervec doctor"),
    (r"\boptimize\(\)", "ciphervec optimize"),
    (r"\bopened with read_only=True; open it for writing", "opened to be read"),
]
_RULES = [(re.compile(pattern), words) for pattern, words in _WORDS]


def reworded(text: str) -> str:
    """The text for somebody at a command line."""
    for pattern, words in _RULES:
        text = pattern.sub(words, text)
    return text
