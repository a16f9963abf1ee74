"""E-mails are tried again less and less often, and their texts stay out of log lines."""

from cuepost.domain.mail import FIRST_RETRY, LONGEST_RETRY, Message, mail_retry_after


def test_an_email_is_tried_less_and_less_often() -> None:
    tried = [mail_retry_after(attempts) for attempts in (0, 2, 90)]
    assert tried == [FIRST_RETRY, 4 * FIRST_RETRY, LONGEST_RETRY]


def test_the_text_of_a_message_is_not_shown() -> None:
    assert repr(Message("You are invited", "https://example.com/join/token")) == (
        "Message('You are invited')"
    )
