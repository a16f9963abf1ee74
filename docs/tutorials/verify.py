"""Checks one delivery: the raw body on standard input, the rest from the environment."""

import os
import sys

from standardwebhooks import Webhook

headers = {
    "webhook-id": os.environ["WEBHOOK_ID"],
    "webhook-timestamp": os.environ["WEBHOOK_TIMESTAMP"],
    "webhook-signature": os.environ["WEBHOOK_SIGNATURE"],
}
event = Webhook(os.environ["SECRET"]).verify(sys.stdin.buffer.read(), headers)
print(event["type"])
