"""Whatever comes, a parser returns or refuses in its own words, in no time."""

import json
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from cuepost.interfaces.wire_models.webhooks import CreateWebhook
from tests.fuzz.malformed import EXAMPLES, IDS, blobs, documents, texts
from tests.fuzz.parsers import PARSERS, URLS, Parser

# Of the processor, so that a busy machine does not count.
LONGEST_SECONDS = 1.0
CARELESS = (
    Parser("number", texts("443"), int),
    Parser("id", texts(*IDS), UUID),
    Parser("text", blobs("Trailer"), bytes.decode),
    Parser("bytes", texts("Trailer"), str.encode),
    Parser("port", texts(*URLS), lambda text: urlsplit(text).port),
    Parser("nested JSON", documents(CreateWebhook), json.loads, (ValueError,)),
    Parser("name of JSON", documents(CreateWebhook), lambda raw: json.loads(raw)["url"].lower()),
)


THOROUGH = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
# The same every time, and content with whatever it finds first.
QUICK = settings(THOROUGH, max_examples=1_000, derandomize=True, phases=[Phase.generate])


def hold(parser: Parser, how: settings) -> None:
    @how
    @given(parser.inputs)
    def holds(value: Any) -> None:
        began = time.thread_time()
        with suppress(*parser.refusals):
            parser.read(value)
        assert time.thread_time() - began < LONGEST_SECONDS

    holds()


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_everything_is_read_or_refused(parser: Parser) -> None:
    hold(parser, THOROUGH)


@pytest.mark.parametrize("parser", CARELESS, ids=lambda parser: parser.name)
def test_a_careless_parser_is_found_out(parser: Parser) -> None:
    with pytest.raises(Exception, match=r".*"):
        hold(parser, QUICK)
