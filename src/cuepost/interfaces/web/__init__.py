"""The settings pages: server-rendered, usable without JavaScript, under a strict policy."""
