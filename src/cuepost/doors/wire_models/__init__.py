"""What goes over the wire, in and out, as every door shows it."""
