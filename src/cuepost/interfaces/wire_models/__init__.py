"""Models of requests and responses, shared by the interfaces."""
