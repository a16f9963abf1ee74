"""A real service signs people in with a certified provider, over HTTP."""

import json
from pathlib import Path
from urllib.parse import urljoin

import httpx2

from tests.openid.conftest import Site
from tests.support.openid_provider import settings_for
from tests.support.service_process import free_port, run

CALLBACK = "/sign-in/openid/callback?"


def at_the_provider(client: httpx2.Client, site: Site, name: str, path: str = "") -> str:
    """Sign in there and consent; the address that the provider leads back to."""
    answer = client.get(f"{site.base_url}/sign-in/openid{path}")
    for _ in range(20):
        if answer.has_redirect_location:
            address = urljoin(str(answer.url), answer.headers["location"])
            if address.startswith(site.base_url):
                return address
            answer = client.get(address)
        else:
            answer = client.post(str(answer.url), data={"login": name})
    raise AssertionError("the provider leads nowhere")


def members(site: Site) -> list[dict[str, object]]:
    found = json.loads(site.command("members", "list", "--account", site.account_id, "--json"))
    return list(found["members"] if isinstance(found, dict) else found)


def test_a_person_signs_in_and_a_replay_is_refused(site: Site) -> None:
    with httpx2.Client() as client:
        wanted = "?next=%2Fsettings%2Fprojects"
        back = at_the_provider(client, site, "ada", wanted)
        assert back.startswith(f"{site.base_url}{CALLBACK}")
        cookies = {"cuepost-openid": client.cookies["cuepost-openid"]}
        answer = client.get(back)
        assert (answer.status_code, answer.headers["location"]) == (303, "/settings/projects")
        assert client.get(f"{site.base_url}/settings/projects").status_code == 200
        replayed = httpx2.get(back, cookies=cookies)
        assert (replayed.status_code, "cuepost" in replayed.cookies) == (400, False)
        stolen = httpx2.get(back)
        assert (stolen.status_code, "cuepost" in stolen.cookies) == (400, False)
    assert [(each["email"], each["role"]) for each in members(site)] == [
        ("ada@example.com", "owner")
    ]


def test_people_without_a_role_or_an_account_are_refused(site: Site) -> None:
    for name, sentence in (
        ("eve", "Your sign-in gives you no role"),
        ("mallory", "Your sign-in names an account that this service does not have."),
    ):
        with httpx2.Client() as client:
            answer = client.get(at_the_provider(client, site, name))
            assert (answer.status_code, sentence in answer.text) == (403, True)
            assert client.get(f"{site.base_url}/settings").status_code == 303
    assert members(site) == []
    assert site.process.said.count("event=openid_sign_in_failed reason=identity_refused") == 2


def test_a_sign_in_that_the_person_cancels_is_refused(site: Site) -> None:
    with httpx2.Client(follow_redirects=True) as client:
        page = client.get(f"{site.base_url}/sign-in/openid")
        answer = client.get(f"{page.url}/abort")
        assert (answer.status_code, "Sign-in declined" in answer.text) == (403, True)
        assert str(answer.url).startswith(f"{site.base_url}{CALLBACK}")
    assert members(site) == []


def test_the_doctor_reads_the_documents_of_the_provider(site: Site) -> None:
    assert "The provider answers, with 1 key." in site.command("doctor")


def test_the_doctor_names_a_provider_that_does_not_answer(tmp_path: Path) -> None:
    settings = {"DATA_DIR": str(tmp_path)} | settings_for(f"http://127.0.0.1:{free_port()}")
    ran = run(settings, "doctor")
    assert ran.returncode == 1
    assert "The provider of CUEPOST_OIDC_ISSUER cannot be used" in ran.stdout
    assert settings["OIDC_CLIENT_SECRET"] not in ran.stdout + ran.stderr
