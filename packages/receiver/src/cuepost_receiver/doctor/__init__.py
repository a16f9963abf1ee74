"""The signature doctor: explains why a delivery does not verify, and how to fix it.

It is a pure function of headers, body and secret; its output never contains a secret.
"""

from cuepost_receiver.doctor.causes import Cause
from cuepost_receiver.doctor.diagnosis import diagnose
from cuepost_receiver.doctor.pasted_headers import read_headers
from cuepost_receiver.doctor.verdict import Diagnosis

__all__ = ["Cause", "Diagnosis", "diagnose", "read_headers"]
