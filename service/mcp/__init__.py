"""The MCP server: the tools of a store, over stdio and HTTP."""
