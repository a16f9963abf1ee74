"""What a interface writes beside a request for the log and the metrics: names in its ASGI scope."""

OPERATION = "cuepost.operation"
CALLER = "cuepost.caller"
REQUEST_ID = "cuepost.request_id"
