"""Refused commands: each has a stable code; the interfaces map the classes to HTTP statuses.

Refused
├── Unauthenticated          unauthenticated
│   └── WrongCredentials     wrong_credentials
├── Forbidden
│   ├── MissingScope         missing_scope
│   ├── WrongKindOfKey       wrong_kind_of_key
│   ├── WebhooksNotEnabled   webhooks_not_enabled
│   └── TooManySignIns       too_many_sign_ins
├── NotFound                 not_found
│   ├── LinkNotValid         link_not_valid
│   └── MediaMissing         media_missing
├── Gone
│   ├── LinkExpired          link_expired
│   ├── FileReplaced         file_replaced
│   ├── AccountMoved         account_moved
│   ├── ProjectDeleted       project_deleted
│   └── ProjectAccessExpired project_access_expired
├── Conflict
│   ├── IllegalTransition    illegal_transition
│   ├── RotationOverlapActive rotation_overlap_active
│   ├── DeliveryInProgress   delivery_in_progress
│   ├── EndpointDisabled     endpoint_disabled
│   ├── EndpointLimitReached endpoint_limit_reached
│   ├── ListenerLimitReached listener_limit_reached
│   ├── PositionUnknown      position_unknown
│   ├── ProjectNotEligible   project_not_eligible
│   ├── ProjectNotRehearsable project_not_rehearsable
│   ├── EmailTaken           email_taken
│   ├── ExternalIdTaken      external_id_taken
│   ├── AccountErasing       account_erasing
│   ├── LastOwner            last_owner
│   ├── InvitationLimitReached invitation_limit_reached
│   ├── MoveRefused          move_refused
│   └── ResultNotReady       result_not_ready
├── PreconditionFailed       precondition_failed
├── Invalid                  invalid_request, with a list of field errors
│   └── IdempotencyKeyReused idempotency_key_reused
├── MediaUnavailable         media_unavailable
├── AccountMoving            account_moving
└── RateLimited              rate_limited
"""

from dataclasses import dataclass
from typing import ClassVar


class Refused(Exception):
    """The request was refused."""

    code: ClassVar[str]

    def __init__(self, message: str | None = None, **details: str | int | None) -> None:
        super().__init__(message or type(self).__doc__)
        self.details = details


class Unauthenticated(Refused):
    """Send a valid API key in the header 'Authorization: Bearer <API_KEY>'."""

    code = "unauthenticated"


class WrongCredentials(Unauthenticated):
    """The e-mail or the password is wrong."""

    code = "wrong_credentials"


class Forbidden(Refused):
    """This key may not do that."""


class MissingScope(Forbidden):
    """This key lacks the scope that the call needs."""

    code = "missing_scope"


class WrongKindOfKey(Forbidden):
    """This call takes a key of another kind."""

    code = "wrong_kind_of_key"


class WebhooksNotEnabled(Forbidden):
    """Webhooks are not enabled for this account yet; ask the operator to open access."""

    code = "webhooks_not_enabled"


class TooManySignIns(Forbidden):
    """Too many attempts to sign in; wait a quarter of an hour, or use a one-time link."""

    code = "too_many_sign_ins"


class NotFound(Refused):
    """Not found in this account."""

    code = "not_found"


class LinkNotValid(NotFound):
    """This download link is not valid; fetch the project's result again for a new one."""

    code = "link_not_valid"


class MediaMissing(NotFound):
    """The link is valid, but its file is not in the media store; the service's log says which."""

    code = "media_missing"


class Gone(Refused):
    """This no longer exists."""


class LinkExpired(Gone):
    """This download link has expired; fetch the project's result again for a new one."""

    code = "link_expired"


class FileReplaced(Gone):
    """A later export has replaced this file; fetch the project's result again."""

    code = "file_replaced"


class AccountMoved(Gone):
    """The account has moved to another database and is no longer in this service."""

    code = "account_moved"


class ProjectDeleted(Gone):
    """The project was deleted."""

    code = "project_deleted"


class ProjectAccessExpired(Gone):
    """The project's access window has ended."""

    code = "project_access_expired"


class Conflict(Refused):
    """The current state does not allow this."""


class IllegalTransition(Conflict):
    """The project cannot change from its current status to that one."""

    code = "illegal_transition"


class RotationOverlapActive(Conflict):
    """The previous secret still works; rotate again once its overlap has ended."""

    code = "rotation_overlap_active"


class DeliveryInProgress(Conflict):
    """The delivery is still under way; it can be sent again once it has ended."""

    code = "delivery_in_progress"


class EndpointDisabled(Conflict):
    """The endpoint is disabled; enable it first."""

    code = "endpoint_disabled"


class EndpointLimitReached(Conflict):
    """The account has as many endpoints as it may have; delete one first."""

    code = "endpoint_limit_reached"


class ListenerLimitReached(Conflict):
    """The account has as many listeners as it may have; delete one first."""

    code = "listener_limit_reached"


class PositionUnknown(Conflict):
    """This listener has not received an event at that position yet."""

    code = "position_unknown"


class ProjectNotEligible(Conflict):
    """The delivery's project was deleted or its access window has ended."""

    code = "project_not_eligible"


class ProjectNotRehearsable(Conflict):
    """Only projects that were created in these pages can be changed by hand."""

    code = "project_not_rehearsable"


class EmailTaken(Conflict):
    """This e-mail is already in use; choose another one."""

    code = "email_taken"


class ExternalIdTaken(Conflict):
    """Another account, or another member of the account, has this external id."""

    code = "external_id_taken"


class AccountErasing(Conflict):
    """The account is being erased; it cannot be changed any more."""

    code = "account_erasing"


class LastOwner(Conflict):
    """The account needs an owner; make another member an owner first."""

    code = "last_owner"


class InvitationLimitReached(Conflict):
    """The account has as many open invitations as it may have; revoke one first."""

    code = "invitation_limit_reached"


class MoveRefused(Conflict):
    """The account cannot be moved in this state."""

    code = "move_refused"


class ResultNotReady(Conflict):
    """No export of the project has completed yet."""

    code = "result_not_ready"


class PreconditionFailed(Refused):
    """It has changed since you read it; read it again, and send its new ETag in If-Match."""

    code = "precondition_failed"


@dataclass(frozen=True, slots=True)
class FieldError:
    field: str
    code: str
    message: str


class Invalid(Refused):
    """The request is not valid."""

    code = "invalid_request"

    def __init__(self, *errors: FieldError, message: str | None = None) -> None:
        super().__init__(message or (errors[0].message if errors else None))
        self.errors = errors


class IdempotencyKeyReused(Invalid):
    """This Idempotency-Key was used with another request."""

    code = "idempotency_key_reused"


class MediaUnavailable(Refused):
    """The media store cannot be reached now; try again in a moment."""

    code = "media_unavailable"


class AccountMoving(Refused):
    """The account is being moved to another database; nothing was changed. Try again soon."""

    code = "account_moving"
    retry_after_seconds: ClassVar[int] = 5


class RateLimited(Refused):
    """Too many requests with this key; wait a little."""

    code = "rate_limited"

    def __init__(self, limit: int, retry_after_seconds: int) -> None:
        super().__init__()
        self.limit, self.retry_after_seconds = limit, retry_after_seconds
