"""A store's tools, over MCP."""
