"""Tools of MCP servers: a toolkit per server, with policy of our own about every tool of it."""

from tools.mcp.config import Server
from tools.mcp.toolkit import McpToolkit, mcp_toolkit

__all__ = ["McpToolkit", "Server", "mcp_toolkit"]
