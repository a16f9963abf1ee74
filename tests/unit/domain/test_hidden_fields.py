"""What opens an interface is not shown by a repr."""

from tests.support.records import Records


def test_links_and_reveals_do_not_show_what_they_open() -> None:
    records = Records()
    account = records.account()
    link = records.sign_in_link(records.user(account.id))
    reveal = records.secret_reveal(records.endpoint(account.id))
    invitation = records.invitation(account.id)
    assert [repr(each) for each in (link, reveal, invitation)] == [
        f"SignInLink({link.id})",
        f"SecretReveal({reveal.id})",
        f"Invitation({invitation.id})",
    ]
