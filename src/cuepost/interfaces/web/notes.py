"""What is said after something was done: a closed list, so that an address cannot say anything."""

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "signed-in": "You are signed in. Choose an e-mail and a password for the next time.",
    "new-password": "You are signed in by a link; every other session has ended. For an hour you "
    "can choose a new password here without the old one.",
    "credentials": "E-mail and password are saved; every other session and link has ended.",
    "saved": "The endpoint is saved.",
    "enabled": "The endpoint is enabled; events are delivered again from now on.",
    "disabled": "The endpoint is disabled; what was pending is cancelled.",
    "deleted": "The endpoint and its delivery history are deleted.",
    "overlap-ended": "The previous secret has stopped; deliveries bear one signature again.",
    "test-sent": "The test event is on its way.",
    "retried": "The delivery is on its way again: same event id, three new attempts.",
    "retries-cancelled": "The rest of this bulk retry is left as it is.",
    "revoked": "The key is revoked.",
    "project-created": "The project is created.",
    "project-saved": "The project is saved.",
    "project-deleted": "The project is deleted; its pending notifications have stopped.",
    "project-moved": "The project has moved on.",
    "inbox-answer": "The inbox answers so from now on.",
    "inbox-cleared": "The inbox is empty.",
}
