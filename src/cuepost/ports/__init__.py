"""What the inside needs of the outside, as small Protocols shaped by their users."""
