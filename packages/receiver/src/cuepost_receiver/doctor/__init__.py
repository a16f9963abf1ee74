"""The signature doctor: says why a delivery does not verify, and how to fix it.

A pure function of headers, body and secret; nothing is kept, and no secret is ever repeated.
"""

from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.doctor.diagnosis import diagnose
from cuepost_receiver.doctor.pasted_headers import read_headers
from cuepost_receiver.doctor.verdict import Diagnosis

__all__ = ["Cause", "Diagnosis", "diagnose", "read_headers"]
