"""Collections: rows and questions enter, sealed segments leave; answers enter, matches leave.

From the bottom up: `keys`; `owner`, which seals, asks and opens, with `matches` and `probe`;
`index`, one in memory with its `index_file`, and `neighbors` on it; `write_batch`, what a commit
does; `stores/`, where bytes lie and what answers; `spec`, a collection's description;
`segments`, with `compaction` and `rotation`; `routing/`, rows in clusters; `embedding/`, texts;
`collection` and `client`, which callers see.
"""
