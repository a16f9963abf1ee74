"""The route table: every call of the API, the most frequent one first."""

from cuepost.interfaces.rest import (
    account_members,
    accounts,
    history,
    listeners,
    members,
    milestones,
    portal,
    projects,
    retries,
    webhooks,
)
from cuepost.interfaces.rest.operation import Operation

OPERATIONS: tuple[Operation, ...] = (
    *milestones.OPERATIONS,
    *webhooks.OPERATIONS,
    *history.OPERATIONS,
    *retries.OPERATIONS,
    *listeners.OPERATIONS,
    *projects.OPERATIONS,
    *members.OPERATIONS,
    *accounts.OPERATIONS,
    *account_members.OPERATIONS,
    *portal.OPERATIONS,
)
