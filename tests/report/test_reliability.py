from __future__ import annotations

from xml.etree import ElementTree

from evalstone.report.reliability import reliability_lines, reliability_svg
from evalstone.stats.calibration import reliability

BINS = reliability([0.05, 0.55, 0.5, 0.95, 1.0], [False, True, False, True, True])


def test_a_line_shows_the_share_its_interval_and_where_it_should_be():
    header, first, middle, last = reliability_lines(BINS)
    assert header.split() == ["score", "n", "0", "0.25", "0.5", "0.75", "1"]
    # one case, none yes: the share at 0, Wilson's interval up to 0.793, the mean score at 0.05
    assert first == "0.00 to 0.10    1   o-|" + "-" * 30
    # two cases, one yes: 0.5 (column 20), from 0.095 (4) to 0.905 (36), the mean at 0.525 (21)
    assert middle == "0.50 to 0.60    2   " + " " * 4 + "-" * 16 + "o|" + "-" * 15
    assert last.endswith("|o")


def test_a_share_at_its_place_is_a_star():
    (_, line) = reliability_lines(reliability([1.0], [True]))
    assert line.endswith("*")


def test_bins_of_many_samples_stay_in_line_with_the_scale():
    few, many = reliability([1.0], [True]), reliability([1.0] * 12_345, [True] * 12_345)
    for bins in (few, many):
        header, line = reliability_lines(bins)
        assert len(header) == len(line)


def test_no_case_gives_a_header_only():
    assert len(reliability_lines(())) == 1


def test_the_picture_is_well_formed_and_holds_no_more_than_it_says():
    hostile = '</svg><script>alert(1)</script>"&\x1b[0m\u202e'
    root = ElementTree.fromstring(reliability_svg(BINS, hostile))
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names.count("circle") == 3
    assert not {"script", "a", "image", "use", "foreignObject"} & set(names)
    assert root.attrib["aria-label"].startswith("</svg><script>alert(1)</script>")
    assert "\u202e" not in root.attrib["aria-label"]
