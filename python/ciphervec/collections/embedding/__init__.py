"""Embeds texts, by a function of the caller's or one that a collection names. Runs on the key owner's side, and nowhere
else.

`function` calls and saves one, `encoders` makes one from its name, `minilm` is the default one, `texts` is what collections
do with documents and questions.
"""
