"""The service: every operation of a store over HTTP."""
