from dataclasses import replace

import pytest

from benchmarks.sizes import SMALL
from benchmarks.stores import stores
from benchmarks.trace import traced

# What a delivery passes today, and a little that a busy machine adds to each delivery, such as a
# timer. Lower them with the code; the aims are 35 and 150.
MOST = {"sqlite": (55, 177), "postgres": (63, 192)}


@pytest.mark.parametrize("key", MOST)
def test_a_delivery_passes_no_more_of_our_code_than_it_does_today(key: str) -> None:
    (found,) = [traced(store) for store in stores(replace(SMALL, store=key))]
    names = [name for _, name in found.calls]
    in_order = ("ReportMilestones.report", "AttemptPipeline.start", "OutcomeRecorder._write")
    places = [names.index(each) for each in in_order]
    assert places == sorted(places)
    files, functions = MOST[key]
    assert (found.files <= files, found.functions <= functions) == (True, True), found
