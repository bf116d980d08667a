"""Facts: setting them, and finding ranked lists in a text."""
