"""The MCP interface: the same use cases as REST, as tools for agents, at /mcp."""
