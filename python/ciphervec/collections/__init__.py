"""Collections, and the keys and indexes beside them, for the key owner.

From the bottom up: `keys`; `results` and their `audience`; `owner`, which seals, asks and opens;
`index`, one in memory, and neighbours on it; `spec`, what a collection is to be, with `embedding/`
and `ranking`; `batch`, what a commit does; `world`, what the core asks of Python; `upkeep` and
`collection`, an open collection, with its `facts`; `client`.
"""
