"""How much an adapter reads of a request; events are small."""

from cuepost_receiver.inbox import Answer

MOST_BYTES = 1 << 20
TOO_LARGE = Answer(413, {"error": "too_large", "message": "A delivery is never this large."})
POST_ONLY = Answer(405, {"error": "post_only", "message": "Deliveries come by POST."})
CONTENT_TYPE = "application/json"
