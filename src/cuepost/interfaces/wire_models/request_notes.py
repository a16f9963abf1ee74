"""Keys of facts that an interface leaves in the ASGI scope for the log and the metrics."""

OPERATION = "cuepost.operation"
CALLER = "cuepost.caller"
REQUEST_ID = "cuepost.request_id"
