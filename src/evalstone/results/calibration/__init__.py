"""What is known of a judge from human labels: the calibration, what it measures, and where it is kept."""

from evalstone.results.calibration.store import calibration_for, calibrations_folder, keep, list_calibrations
from evalstone.results.calibration.values import Calibration, LabelledScore, Threshold

__all__ = [
    "Calibration",
    "LabelledScore",
    "Threshold",
    "calibration_for",
    "calibrations_folder",
    "keep",
    "list_calibrations",
]
