"""The gate: whether a look into the memory is worth it."""
