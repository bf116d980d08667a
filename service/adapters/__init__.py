"""Other ways to call the same operations: over HTTP or MCP, with asyncio, or in another process."""
