"""Other ways to the same operations: HTTP, MCP, asyncio, and another process."""
