"""Images of a request: their parts, their addresses, how they reach a worker (specification, images and offload)."""
