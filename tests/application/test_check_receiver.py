"""What is said of a receiver URL while it is being typed."""

from collections.abc import Sequence
from ipaddress import ip_address
from time import perf_counter

import pytest

from cuepost.application import check_receiver
from cuepost.application.check_receiver import NOT_REACHED, CheckReceiver, UrlVerdict
from cuepost.domain.egress_policy import Address
from cuepost.ports.transport import CannotResolve
from cuepost.testing import START, Factory, SequentialIds
from tests.application.harness import BASE_URL, POLICY

OWNER = Factory.owner(SequentialIds()(START))


class Names:
    """A resolver that knows these names."""

    def __init__(self, **known: Sequence[str]) -> None:
        self._known = known

    async def addresses(self, host: str) -> Sequence[Address]:
        found = self._known.get(host.partition(".")[0])
        if found is None:
            raise CannotResolve
        return [ip_address(each) for each in found]


NAMES = Names(good=["93.184.216.34"], private=["10.0.0.1"], mixed=["93.184.216.34", "::1"])
CHECK = CheckReceiver(POLICY, NAMES)


async def test_a_public_receiver_fits_and_is_shown_in_its_stored_form() -> None:
    assert await CHECK.check(OWNER, " https://GOOD.example.com ") == UrlVerdict(
        True,
        "HTTPS, an allowed port, and a public address.",
        "https://good.example.com/",
    )


@pytest.mark.parametrize("name", ["unknown", "private", "mixed"])
async def test_unknown_and_private_names_look_alike_and_take_as_long(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_receiver, "LOOK_UP_SECONDS", 0.2)
    url, began = f"https://{name}.example.com/", perf_counter()
    verdict = await CHECK.check(OWNER, url)
    assert verdict == UrlVerdict(False, NOT_REACHED, url, "host_not_reached")
    # Timers of the event loop may be early by a millisecond.
    assert perf_counter() - began >= 0.198


async def test_a_refused_url_says_why() -> None:
    verdict = await CHECK.check(OWNER, "https://localhost/")
    assert (verdict.fits, verdict.code) == (False, "url_host_not_public")
    assert "cuepost listen" in verdict.sentence


async def test_a_literal_address_and_the_inbox_need_no_look_up() -> None:
    assert (await CHECK.check(OWNER, "https://93.184.216.34/")).fits
    assert (await CHECK.check(OWNER, f"{BASE_URL}/inbox/{'A' * 32}")).fits
