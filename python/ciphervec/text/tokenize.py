"""Divides a text into tokens. The client's side: the server never sees either.

The preprocessing of arXiv 2606.03191, appendix D: HTML entities unescaped, lower case, runs of the
letters a to z; digits, punctuation and other scripts are dropped.
"""

from __future__ import annotations

import html
import itertools
import re

_WORD = re.compile("[a-z]+")


def tokenize(text: str, ngrams: int = 1) -> list[str]:
    """Words in order. With `ngrams=2` each word is followed by the pair that it ends, written with
    a space.

    Pairs stand among the words, so that a limit on the tokens of a document cuts both at the same
    place.
    """
    words = _WORD.findall(html.unescape(text).lower())
    if ngrams == 1:
        return words
    tokens = words[:1]
    for before, word in itertools.pairwise(words):
        tokens += (word, f"{before} {word}")
    return tokens
