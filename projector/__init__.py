"""log → read model: schema, checkpoints, replay, handlers, chunks, vectors, generations, digest."""
