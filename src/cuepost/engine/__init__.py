"""What goes on by itself, without anybody asking."""
