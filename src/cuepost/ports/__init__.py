"""What the use cases and the engine need of the adapters, as small Protocols."""
