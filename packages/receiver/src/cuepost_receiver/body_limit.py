"""The size limit of requests, and the responses of adapters."""

from cuepost_receiver.inbox import Answer

MOST_BYTES = 1 << 20
TOO_LARGE = Answer(413, {"error": "too_large", "message": "The body is too large."})
POST_ONLY = Answer(405, {"error": "post_only", "message": "Method not allowed. Use POST."})
CONTENT_TYPE = "application/json"
