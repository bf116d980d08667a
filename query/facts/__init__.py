"""Facts: what is known by the name of a topic, and asking for it in plain words."""
