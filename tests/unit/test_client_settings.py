"""How a command reaches a running service, and what it says when it cannot know."""

import pytest

from cuepost.settings import BadSettings, load
from cuepost.settings.clients import load_client

CANARY = "canary-of-the-settings"


def test_how_commands_reach_a_service_is_no_setting_of_it_and_does_not_disturb() -> None:
    reported = {"CUEPOST_URL": "anything", "CUEPOST_API_KEY": "anything"}
    assert load(reported) == load({})


def test_a_command_finds_the_service_by_address_and_key() -> None:
    found = load_client({"CUEPOST_URL": "https://cue.example/ ", "CUEPOST_API_KEY": f" {CANARY}\n"})
    assert (found.url, found.api_key) == ("https://cue.example", CANARY)
    assert CANARY not in repr(found)
    assert load_client({"CUEPOST_API_KEY": "cpk_x"}).url == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "CUEPOST_API_KEY"),
        ({"CUEPOST_API_KEY": " "}, "CUEPOST_API_KEY"),
        ({"CUEPOST_API_KEY": "schlüssel"}, "CUEPOST_API_KEY"),
        ({"CUEPOST_API_KEY": "cpk\nx"}, "CUEPOST_API_KEY"),
        ({"CUEPOST_URL": "cue.example"}, "CUEPOST_URL"),
        ({"CUEPOST_URL": "ftp://cue.example"}, "CUEPOST_URL"),
        ({"CUEPOST_URL": "https://[::1"}, "CUEPOST_URL"),
        ({"CUEPOST_URL": "https://"}, "CUEPOST_URL"),
    ],
)
def test_a_command_says_what_it_lacks_and_repeats_no_key(
    variables: dict[str, str], name: str
) -> None:
    with pytest.raises(BadSettings) as caught:
        load_client(variables)
    assert str(caught.value).startswith(name)
    assert "schl" not in str(caught.value)
