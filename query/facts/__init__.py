"""Facts, stored by topic, and answers to natural-language questions about them."""
