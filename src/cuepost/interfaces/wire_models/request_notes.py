"""Keys of the ASGI scope that interfaces set for logs and metrics."""

OPERATION = "cuepost.operation"
CALLER = "cuepost.caller"
