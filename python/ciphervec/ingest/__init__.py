"""What callers and files bring, checked before anything is sealed: arrays, ids, records, conditions, archives. Either side."""
