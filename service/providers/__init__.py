"""Models that others serve: vectors and ranks over HTTP, and nothing sent unless it is configured."""
