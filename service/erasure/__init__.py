"""Erasing: forgetting, scrubbing, and proof that it is gone."""
