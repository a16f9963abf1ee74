"""The MCP door: the same use cases as REST, as tools for agents, at /mcp."""
