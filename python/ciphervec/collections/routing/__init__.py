"""Routing: rows in clusters and questions enter; padded clusters, and the few segments that a question names, leave.
Key owner's side.

From the bottom up: `clusters`, what is chosen; `table`, which segment is which cluster, `opened` for a state; `clustering`,
k-means; `padding` and `rows`, clusters as segments; `search`, questions; `recluster`, which makes clusters anew; `explaining`,
what it costs and shows.
"""
