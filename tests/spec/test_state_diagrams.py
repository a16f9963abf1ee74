"""The page of state diagrams is drawn from the tables in the code, and is up to date."""

from pathlib import Path

import pytest

from cuepost.domain.delivery import TRANSITIONS
from cuepost.domain.project import MOVES
from scripts import state_diagrams


def test_the_page_of_states_is_up_to_date() -> None:
    assert state_diagrams.main(["--check"]) == 0


def test_every_move_of_both_machines_is_drawn() -> None:
    drawn = state_diagrams.page()
    for status, following in MOVES.items():
        for to in following:
            assert f"    {status} --> {to}\n" in drawn
    for (before, cause), after in TRANSITIONS.items():
        assert f"    {before} --> {after}: {cause}\n" in drawn


def test_a_stale_page_is_noticed_and_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(state_diagrams, "PAGE", tmp_path / "concepts" / "states.md")
    assert state_diagrams.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert state_diagrams.main([]) == 0
    assert state_diagrams.main(["--check"]) == 0
