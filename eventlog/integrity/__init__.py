"""What shows or makes a change of finished segments: seals, verification, erasure."""
