"""Confirmations after an action: a closed list, so that an address cannot inject text."""

from collections.abc import Mapping

NOTES: Mapping[str, str] = {
    "signed-in": "You are signed in. Set an e-mail and a password under Sign-in for the next time.",
    "new-password": "You are signed in by a link; every other session has ended. For an hour you "
    "can set a new password here without the old one.",
    "credentials": "E-mail and password are saved; all other sessions and links have ended.",
    "connected": "From now on you can sign in with the provider.",
    "alerts-on": "You get an e-mail when an endpoint starts failing and when it has recovered.",
    "alerts-off": "You get no more e-mails about failing endpoints.",
    "saved": "The endpoint is saved.",
    "enabled": "The endpoint is enabled; events are delivered again from now on.",
    "disabled": "The endpoint is disabled; its pending deliveries are cancelled.",
    "deleted": "The endpoint and its delivery history are deleted.",
    "overlap-ended": "The previous secret has expired; deliveries carry one signature again.",
    "test-sent": "The test event is being sent.",
    "retried": "The delivery is being retried: same event id, three new attempts.",
    "retries-cancelled": "The bulk retry is cancelled; the remaining deliveries are unchanged.",
    "revoked": "The key is revoked.",
    "role-changed": "The role is changed.",
    "member-removed": "The member is removed and signed out everywhere.",
    "invitation-revoked": "The invitation is revoked; its link has stopped working.",
    "joined": "You are a member now, and signed in.",
    "project-created": "The project is created.",
    "project-saved": "The project is saved.",
    "project-deleted": "The project is deleted; its pending deliveries are cancelled.",
    "project-moved": "The project's status has changed.",
    "inbox-answer": "The answer of the inbox is saved.",
    "access-opened": "Access to webhooks is open.",
    "access-closed": "Access to webhooks is closed; waiting deliveries are cancelled.",
    "inbox-cleared": "The inbox is empty.",
}
