"""The settings pages: server-rendered, usable without JavaScript, strict about content."""
