"""Every operation of a store, over HTTP."""
