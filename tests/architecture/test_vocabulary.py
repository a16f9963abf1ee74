"""Names and prose use the words of docs/glossary.md; these words are not to come back."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "packages", "tests", "benchmarks", "scripts", "docs", "examples", "deploy")
# CONTRIBUTING.md and CHANGELOG.md name the old words beside the new ones.
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "AGENTS.md", "SECURITY.md")
SUFFIXES = {".py", ".md", ".html", ".js", ".css", ".toml", ".yaml", ".yml", ".service"}
# A migration is never changed once it has run, and its tests write the columns of its time.
NOT_OURS = re.compile(
    r"/vendor/|/migrations/versions/|/tests/migrations/old_|/tests/clients/python/"
)

MOST_TERMS = 40

INSTEAD: Mapping[str, str] = {
    "door doors": "interface",
    "house houses": "runtime, site or service",
    "housekeeper housekeeping": "maintenance",
    "visit visits": "request context",
    "visitor visitors": "caller or signed-in user",
    "gate gates": "authentication or handler",
    "desk desks": "batcher",
    "gathering gatherings": "batching",
    "bookkeeper bookkeepers": "milestone batch",
    "manner manners": "durability, priority or behaviour",
    "glance glances glanced": "single read",
    "stray strays": "orphaned",
    "strange": "unknown",
    "unwanted": "to release",
    "journey journeys": "phase timings",
    "chore chores": "maintenance job",
    "tidy tidies tidied tidying": "maintenance",
    "forgetting": "expiry",
    "mend mends mended mending": "fix",
    "theatre theatres": "scenario runner",
    "street streets": "network",
    "frost": "freeze",
    "onlooker onlookers": "observer",
    "furniture furnish furnishes furnished furnishing": "populated",
    "mishap mishaps": "fault",
    "guest guests": "client",
    "rival rivals": "instance",
    "errand errands": "request",
    "somebody": "the person or process that is meant",
    "nobody": "no client, no worker, no one",
    "anew": "again",
}
PHRASES: Mapping[str, str] = {
    "look around": "full scan",
    "right of way": "ingest priority",
    "single file": "backlog throttle",
    "in company": "foreground",
    "those who": "the clients, workers or people that are meant",
    "so many": "the name of the number",
    "by the way": "in the same statement",
}
PLAIN = {word: instead for words, instead in INSTEAD.items() for word in words.split()}
PLAIN |= PHRASES
# In prose, in snake_case and in CamelCase.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]{2,}")
_PHRASE = re.compile(
    rf"(?:{'|'.join(phrase.replace(' ', '[ _]?') for phrase in PHRASES)})(?-i:(?![a-z]))",
    re.IGNORECASE,
)
# A user of Unix, an address that no one has, and names of other programs.
_ALLOWED = re.compile(
    r"[\"'`~]nobody\b|\bnobody@|\bNOBODY\b|flake8-tidy|\bvisit_|\(kernel\|guest\)|benchmarks\.furnishing.*"
)


def texts() -> Iterator[Path]:
    yield from (ROOT / name for name in DOCUMENTS)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and not NOT_OURS.search(path.as_posix()):
                yield path


def words_in(text: str) -> set[str]:
    words = {word.lower() for word in _WORD.findall(_ALLOWED.sub("", text))}
    found = {re.sub("[^a-z]", "", each.lower()) for each in _PHRASE.findall(text)}
    phrases = {phrase for phrase in PHRASES if phrase.replace(" ", "") in found}
    return (words | phrases) & PLAIN.keys()


def found_in(text: str) -> Iterator[str]:
    if not words_in(text):
        return
    for number, line in enumerate(text.splitlines()):
        for word in sorted(words_in(line)):
            yield f"{number}: {word!r}, write {PLAIN[word]!r}"


def test_no_private_metaphor_is_left() -> None:
    paths = [path for path in texts() if path != Path(__file__).resolve()]
    assert len(paths) > 500
    left = [
        f"{path.relative_to(ROOT)}:{found}"
        for path in paths
        for found in found_in(f"{path.stem}\n{path.read_text(encoding='utf-8')}")
    ]
    assert left == []


@pytest.mark.parametrize(
    "line",
    [
        "at the door",
        "front_door = 1",
        "class McpDoor:",
        "Nobody waits.",
        "look_around()",
        "Mended.",
        "lookAround",
    ],
)
def test_a_word_is_found_however_it_is_written(line: str) -> None:
    assert list(found_in(line))


@pytest.mark.parametrize(
    "line",
    [
        "outdoors",
        "a warehouse",
        'getpwnam("nobody")',
        "nobody@example.com",
        "delegate",
        "those whose",
    ],
)
def test_other_words_are_not(line: str) -> None:
    assert not list(found_in(line))


def test_the_glossary_has_at_most_forty_terms_in_their_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE)[2:]
    assert terms == sorted(terms)
    assert len(terms) <= MOST_TERMS
