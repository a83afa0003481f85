"""Collections, and the keys and indexes beside them, for the key owner.

From the bottom up: `keys`; `owner`, which seals, asks and opens, with `matches` and `probe`;
`index`, one in memory, and `neighbors` on it; `write_batch`, what a commit
does; `spec` and `choices`, what a collection is to be; `embedding/`, texts; `world`, what the core asks of
Python; `upkeep`, `texts` and `collection`, an open collection; `client`.
"""
