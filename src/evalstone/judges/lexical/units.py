"""Units of measurement and currencies after numbers, with one spelling for each: `5kg` and `5 kilos` become
`5 kilogram`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from evalstone._core.text import stem

_SPELLINGS = """
second seconds sec secs s | minute minutes min mins | hour hours hr hrs h | day days | week weeks wk wks | month months
| year years yr yrs | decade decades | millimeter millimeters millimetre millimetres mm | centimeter centimeters
centimetre centimetres cm | meter meters metre metres m | kilometer kilometers kilometre kilometres km | inch inches
| foot feet ft | yard yards yd yds | mile miles mi | milligram milligrams mg | gram grams gramme grammes g
| kilogram kilograms kilo kilos kg | ton tons | tonne tonnes | ounce ounces oz | pound pounds lb lbs
| milliliter milliliters millilitre millilitres ml | liter liters litre litres l | teaspoon teaspoons tsp
| tablespoon tablespoons tbsp | cup cups | pint pints | quart quarts | gallon gallons gal
| millisecond milliseconds ms | microgram micrograms mcg µg μg | hectare hectares ha | acre acres
| byte bytes | kilobyte kilobytes kb | megabyte megabytes mb | gigabyte gigabytes gb | terabyte terabytes tb
| hertz hertz hz | kilohertz kilohertz khz | megahertz megahertz mhz | gigahertz gigahertz ghz
| watt watts w | kilowatt kilowatts kw | megawatt megawatts mw | horsepower horsepower hp | volt volts
| mph mph | kmh kmh kph | degree degrees | percent percent
| dollar dollars usd | euro euros eur | cent cents | yen yen jpy | yuan yuan rmb cny | rupee rupees inr
| franc francs chf | peso pesos
"""
_EACH = [spellings.split() for spellings in _SPELLINGS.split("|")]
_UNITS: Mapping[str, str] = {spelling: spellings[0] for spellings in _EACH for spelling in spellings}
_PLURALS: Mapping[str, str] = {spellings[0]: spellings[1] for spellings in _EACH}
UNIT_SPELLINGS: Mapping[str, str] = {
    spelling: unit for spelling, unit in _UNITS.items() if stem(spelling) != stem(unit)
}
"""The units with a stem of their own, such as `feet` and `kg`, and the singulars that replace them."""
CURRENCIES = frozenset({"dollar", "euro", "pound", "yen"})
"""The currencies of signs, which are a part of their number."""
_HINTS_AT_JOINED = re.compile(r"\d[a-zA-Zµμ]")
_SPEED = re.compile(r"\b(?:km/h|mi/h|(?:miles?|kilomet(?:er|re)s?) (?:per|an) hour)\b", re.IGNORECASE)
# A single letter stays: "330m" are metres or millions.
_JOINED = re.compile(
    r"(?<![\w.,])(\d++(?:[.,]\d++)*)(mm|cm|km|[mµμ]g|mcg|kg|ml|ft|lbs?|oz|hrs?|mins?|ms|yds?|tsp|tbsp"
    r"|[kmgt]b|[kmg]?hz|[km]w|hp|mph|kph)\b",
    re.IGNORECASE,
)


def spaced_units(text: str) -> str:
    """The text with a space between a number and its unit, which is one word: `5kg` becomes `5 kg`, `km/h` `kmh`."""
    if "/h" in text or "/H" in text or "hour" in text:
        text = _SPEED.sub(lambda found: "kmh" if found[0][0] in "kK" else "mph", text)
    if "°" in text:
        text = text.replace("°C", " degrees Celsius ").replace("°F", " degrees Fahrenheit ").replace("°", " degrees ")
    return _JOINED.sub(r"\1 \2", text) if _HINTS_AT_JOINED.search(text) else text


def shown_measure(number: str, unit: str) -> str:
    """A number and its unit as shown in a reason."""
    return f"{number} {unit if number == '1' else _PLURALS[unit]}"


def measures(low: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each number before a unit, and the unit, among tokens with normalized numbers."""
    for number, word in itertools.pairwise(low):
        if number[0].isdigit() and (unit := _UNITS.get(word)):
            yield number, unit
