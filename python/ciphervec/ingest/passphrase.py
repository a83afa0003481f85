"""Why a passphrase would be guessed. Key owner's side."""

from __future__ import annotations

import math
import re

_LEAST_BITS = 50
_COMMON = re.compile(
    r"pass(word|wort|phrase)?|qwert[yz]\w*|letmein|admin|welcome|secret|iloveyou|monkey|dragon|ciphervec|abc(def)?|"
    r"0?1?2?345?6?7?8?9?0?|asdf\w*|test|default|changeme|master",
    re.IGNORECASE,
)
_ALPHABETS = ((r"[a-z]", 26), (r"[A-Z]", 26), (r"[0-9]", 10), (r"[^a-zA-Z0-9]", 33))


def weakness(passphrase: str) -> str:
    """What is wrong with a passphrase that guards a file others may copy; nothing if it is long and
    varied enough.

    Common words count as one character, repeated characters little; of the rest, each is worth the
    bits of the alphabets that occur. Below 50 bits somebody who has the file finds it by trying, for
    all that each try takes a good part of a second.
    """
    rest = _COMMON.sub("*", passphrase)
    size = sum(letters for pattern, letters in _ALPHABETS if re.search(pattern, rest))
    distinct = len(set(rest))
    effective = min(len(rest), 3 * distinct)
    bits = effective * math.log2(max(size, 2))
    if bits >= _LEAST_BITS:
        return ""
    return (
        f"the passphrase is weak, about {bits:.0f} bits: whoever copies the file can try every one like it. Four or five "
        "words chosen by dice, or twelve random characters, hold."
    )
