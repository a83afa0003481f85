"""Adapters: other people's frameworks on one side, collections on the other. Key owner's side.

A file a framework, imported by whoever uses that framework and by nothing else here; the extra of
the same name installs it. `docs/integrations.md` has an example of each.
"""
