"""What goes over the wire, in and out, as every interface shows it."""
