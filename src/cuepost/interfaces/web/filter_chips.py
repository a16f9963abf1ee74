"""Presets that set a filter with one click, and chips that show and remove the set ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.web.delivery_filters import RANGES, AddressFilters, instant_in
from cuepost.interfaces.web.rendering import words
from cuepost.interfaces.web.times import moment

_S = DeliveryStatus
STATUSES = (_S.FAILED, _S.RETRYING, _S.PENDING, _S.DELIVERED, _S.CANCELLED)
# Groups of actions in the audit trail.
PRESET_GROUPS: Mapping[str, str] = {
    "webhook": "Endpoints",
    "key": "API keys",
    "member": "Members",
    "user": "Sign-in",
}
LABELS: Mapping[str, str] = {
    "status": "Status",
    "type": "Event",
    "outcome": "Outcome",
    "class": "HTTP status",
    "endpoint": "Endpoint",
    "action": "Action",
    "actor": "By",
    "project": "Project",
    "event": "Event id",
    "since": "Since",
    "until": "Until",
}


@dataclass(frozen=True, slots=True)
class Preset:
    label: str
    query: str
    is_set: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """`query` is that of the page without the filter."""

    label: str | Markup
    query: str


def ranges(filters: AddressFilters) -> list[Preset]:
    return [_preset(filters, "range", text, label) for text, (label, _) in RANGES.items()]


def audit_groups(filters: AddressFilters) -> list[Preset]:
    return [_preset(filters, "action", group, label) for group, label in PRESET_GROUPS.items()]


def statuses(filters: AddressFilters) -> list[Preset]:
    return [_preset(filters, "status", each, each.capitalize()) for each in STATUSES]


def chips(filters: AddressFilters, names: Mapping[str, str]) -> Sequence[Chip]:
    """`names` are those of the objects whose ids are in the address."""
    return list(_chips(filters, names))


def _preset(filters: AddressFilters, name: str, text: str, label: str) -> Preset:
    return Preset(label, filters.toggled(name, text), filters.given.get(name) == text)


def _chips(filters: AddressFilters, names: Mapping[str, str]) -> Iterator[Chip]:
    for name, text in filters.given.items():
        query = filters.without(name)
        if name == "range":
            yield Chip(RANGES[text][0], query)
        elif name == "delivered":
            yield Chip("With failed retries of delivered ones", query)
        elif name in ("since", "until"):
            yield Chip(Markup("{}: {}").format(LABELS[name], moment(instant_in(text))), query)
        else:
            yield Chip(f"{LABELS[name]}: {names.get(text) or words(text)}", query)
