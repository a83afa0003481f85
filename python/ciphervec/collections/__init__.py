"""Collections: rows and questions enter, sealed segments leave; answers enter, matches leave.

From the bottom up: `keys`; `owner`, which seals, asks and opens, with `matches` and `probe`;
`index`, one in memory with its `index_file`, and `neighbors` on it; `write_batch`, what a commit
does; `server_backend`, what answers; `store`, where bytes lie; `spec`, a collection's description;
`segments`, with `compaction` and `rotation`; `collection` and `client`, which callers see.
"""
