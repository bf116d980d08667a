"""Keys and passwords in texts, and the gate through which texts leave the process."""
