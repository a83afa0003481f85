"""A sidecar for another vector store's clients: it takes their requests in the clear, on the application's own machine,
and answers from sealed collections of a server or a folder. Key owner's side."""
