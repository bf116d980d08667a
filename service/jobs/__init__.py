"""Jobs: what memlog does with a store by itself, by day and by week."""
