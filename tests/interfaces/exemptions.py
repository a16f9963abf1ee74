"""What REST can do and another interface cannot: it is written down here, with the reason."""

from dataclasses import dataclass

MCP, PAGES = "MCP", "pages"


@dataclass(frozen=True)
class Exemption:
    use_cases: tuple[str, ...]
    interfaces: tuple[str, ...]
    reason: str


EXEMPTIONS = (
    Exemption(
        ("milestones.report",),
        (MCP, PAGES),
        "Milestones come from the processing pipeline, with the operator's key; a caller of "
        "an account must not be able to invent them. The pages rehearse them, for projects that "
        "were created there.",
    ),
    Exemption(
        (
            "listeners.register",
            "listeners.page",
            "listeners.follow",
            "listeners.acknowledge",
            "listeners.delete",
        ),
        (MCP, PAGES),
        "A program follows a stream, for hours and event by event, and sends each on to a local "
        "receiver; it comes and goes with the program, and is forgotten by itself. Agents and "
        "people look at the events instead.",
    ),
    Exemption(
        (
            "accounts.create",
            "accounts.change",
            "accounts.erase",
            "accounts.create_key",
            "accounts.revoke_key",
        ),
        (MCP, PAGES),
        "A product or the command line does that. The operator's pages are for the person on call, "
        "and an agent must not be able to make keys or to erase accounts.",
    ),
    Exemption(
        ("accounts.set_webhooks", "accounts.keys"),
        (MCP,),
        "An agent must not be able to close the access of accounts, and keys do not help it.",
    ),
    Exemption(
        (
            "members.page",
            "members.get",
            "members.change",
            "members.remove",
            "members.invitations",
            "members.invite",
            "members.resend",
            "members.revoke",
        ),
        (MCP,),
        "An agent must not be able to let people in or out, and names of people do not help it.",
    ),
    Exemption(
        (
            "account_members.add",
            "account_members.change",
            "account_members.remove",
            "portal.create",
            "portal.revoke",
            "portal.end_sessions",
        ),
        (MCP, PAGES),
        "A host product lets its own users in and out, with its operator key; an agent must not, "
        "and the settings pages show one account to its own members.",
    ),
    Exemption(
        ("account_members.page",),
        (PAGES,),
        "The settings pages list the members of their own account by members.page.",
    ),
    Exemption(
        ("members.get", "members.change"),
        (PAGES,),
        "The page of members lists all with their roles, and each chooses alerts under Sign-in.",
    ),
    Exemption(
        ("history.deliveries",),
        (PAGES,),
        "The pages list deliveries by history.search, which takes the same filters and besides "
        "them how the last attempt went.",
    ),
)
# It answers from the catalogue, without a use case: how each interface does it.
WITHOUT_USE_CASE = {"listEventTypes": {MCP: "event_types_list", PAGES: "/settings/event-types"}}


def exempt_from(interface: str) -> set[str]:
    return {name for each in EXEMPTIONS if interface in each.interfaces for name in each.use_cases}
