"""What operations take: a request for each, grouped as the store groups them."""
