"""Entries of the audit trail as sentences, with names and links instead of ids."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from cuepost.domain.audit import AuditEntry
from cuepost.interfaces.web.rendering import inert, words

# What the actor did. `{subject}` is a link to what it was done to, the others are details.
SENTENCES: Mapping[str, str] = {
    "account.created": "created the account",
    "account.changed": "changed the account",
    "account.erasure_started": "started to erase the account",
    "account.access_opened": "opened access to webhooks",
    "account.access_closed": "closed access to webhooks",
    "account.move_started": "started to move the account to another database",
    "account.move_aborted": "stopped the move of the account",
    "account.moved": "moved the account to another database",
    "account.arrived": "moved the account to this database",
    "key.created": "created the API key {name}",
    "key.revoked": "revoked the API key {name}",
    "webhook.created": "created the endpoint {subject}",
    "webhook.changed": "changed the endpoint {subject}",
    "webhook.enabled": "enabled the endpoint {subject}",
    "webhook.disabled": "disabled the endpoint {subject}",
    "webhook.deleted": "deleted the endpoint {url}",
    "webhook.secret_rotated": "rotated the secret of {subject}",
    "webhook.overlap_ended": "ended the overlap of the secrets of {subject}",
    "webhook.secret_revealed": "viewed the new secret of {subject}",
    "webhook.test_sent": "sent a test event to {subject}",
    "delivery.retried": "retried {subject}",
    "bulk_retry.started": "started a bulk retry of {subject}",
    "bulk_retry.cancelled": "cancelled a bulk retry of {subject}",
    "listener.created": "created the listener {name}",
    "listener.deleted": "deleted the listener {name}",
    "project.deleted": "deleted the project {subject}",
    "project.rehearsed": "reported the project {subject} as {status}",
    "user.sign_in_link_made": "created a sign-in link",
    "user.signed_in": "signed in by {by} {issuer}",
    "user.sign_in_refused": "failed to sign in",
    "user.signed_out": "signed out",
    "user.credentials_changed": "changed the e-mail and the password",
    "user.identity_connected": "connected the sign-in with {issuer}",
    "member.invited": "invited {email} as {role}",
    "member.added": "added the member {name} as {role}",
    "member.changed": "changed the reference of the member {name}",
    "member.joined": "joined the account as {role}",
    "member.role_changed": "changed the role of {email} from {was} to {role}",
    "member.alerts_changed": "switched alerts by e-mail {alerts} for {email}",
    "member.removed": "removed the member {email}",
    "invitation.resent": "sent the invitation for {email} as {role} again",
    "invitation.revoked": "revoked an invitation for {email}",
    "portal.link_created": "created a portal link for {name} as {role}",
    "portal.link_revoked": "revoked a portal link and ended its session",
    "portal.sessions_ended": "ended the portal sessions of {name}",
}
_OF_MEMBERS = {"member.added", "member.changed", "portal.link_created", "portal.sessions_ended"}
# Where the subject of an entry is shown, by the first word of its action.
PLACES: Mapping[str, str] = {
    "webhook": "/settings/webhooks/{}",
    "bulk_retry": "/settings/webhooks/{}",
    "project": "/settings/projects/{}",
    "delivery": "/settings/deliveries?q={}",
}
# In place of a subject that is gone, with the words before it.
_GONE = {
    "the endpoint {subject}": "an endpoint that was deleted since",
    "the project {subject} as": "a project that was deleted since as",
    "the project {subject}": "a project",
    "{subject}": "an endpoint that was deleted since",
}


@dataclass(frozen=True, slots=True)
class Names:
    """`objects` are names by id; an object without one was deleted.

    Without links nothing leads to pages of the account.
    """

    root: str
    viewer: str
    objects: Mapping[str, str]
    with_links: bool = True


def sentence(entry: AuditEntry, names: Names) -> Markup:
    phrase = SENTENCES.get(entry.action, words(entry.action.replace(".", " ")))
    details = {"email": Markup("a person")}
    details |= {name: _quoted(text) for name, text in entry.details.items()}
    if entry.action in _OF_MEMBERS:
        known = entry.details.get("email") or entry.details.get("externalId")
        details["name"] = _quoted(known) if known else _unnamed(entry)
    subject = _subject(entry, names)
    if subject is None:
        for words_before, gone in _GONE.items():
            phrase = phrase.replace(words_before, gone)
    said = Markup(phrase).format_map(_Details(details | {"subject": subject or Markup("")}))
    said = said.strip()
    return Markup("<strong>{}</strong> {}").format(actor(entry, names), said)


def actor(entry: AuditEntry, names: Names) -> str:
    """By the name that the actor had then; entries of older versions have none."""
    kind, _, name = entry.actor.partition(":")
    if entry.actor == names.viewer:
        return "You"
    if kind == "key":
        return f"The API key {entry.actor_name or names.objects.get(name, name)}"
    if kind == "operator":
        return f"The operator {name}"
    return entry.actor_name or ("Another user" if kind == "user" else entry.actor)


class _Details(dict[str, Markup]):
    """An invitation by link names no e-mail; entries of older versions may lack more."""

    def __missing__(self, name: str) -> Markup:
        return Markup("a member" if name == "email" else "")


def _subject(entry: AuditEntry, names: Names) -> Markup | None:
    """None if it is gone and the entry does not say what it was called."""
    subject = entry.subject or ""
    kind = entry.action.partition(".")[0]
    name = "a delivery" if kind == "delivery" else names.objects.get(subject)
    if kind not in PLACES or not names.with_links:
        return _quoted(entry.details.get("url", subject))
    if name is None:
        known = entry.details.get("url")
        return None if known is None else _quoted(known)
    return Markup('<a href="{}">{}</a>').format(names.root + PLACES[kind].format(subject), name)


def _unnamed(entry: AuditEntry) -> Markup:
    is_one = entry.action != "portal.sessions_ended" or "member" in entry.details
    return Markup("a member" if is_one else "all members")


def _quoted(text: str) -> Markup:
    return Markup("<em>{}</em>").format(inert(text))
