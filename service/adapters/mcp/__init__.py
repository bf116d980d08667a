"""The tools of a store over MCP."""
