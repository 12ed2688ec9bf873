"""JSON as language models write it: with the quotes, keys and constants of Python and JavaScript.

    {'verdict': 'yes'}  {“verdict”: “yes”}  {verdict: "yes"}  {1: "yes"}  True  .5  "it\\'s"  [1, 2,]  // a comment

Only the spelling is converted. What isn't JSON after that, such as an unescaped quote inside a text, is refused.
"""

from __future__ import annotations

import re

OPENING = re.compile(
    r"\[\s*+(?=[{\"'“])|\{(?=\s*+(?:[\"}]|//)|[\s`]*+\Z"
    r"|\s*+(?:'(?:[^'\\\n]|\\.){1,80}'|“[^“”\n]{1,80}”)\s*:"
    r"|\s*+(?:[A-Za-z_]\w{0,80}|\d{1,6})\s*:\s*[\"'“{\[])"
)
"""The beginning of an object, or of a list of objects or texts. Other braces are prose."""
_TOKEN = re.compile(
    r"(?P<skipped>\s+|//[^\n]*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|“(?:[^“”\\]|\\.)*”)"
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<word>[^\s{}\[\]:,\"'“”/]+)",
    re.DOTALL,
)
_BEFORE_VALUE = ("{", "[", ":", ",")
_MOST_NESTED = 100
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_BARE_DECIMAL = re.compile(r"(?<![^-])\.(?=\d)")
_KEY = re.compile(r"[^\W\d]\w*|\d+")
_LATEX = "|".join(
    rf"{commands[0]}(?=(?:{commands[1:]})\b)"
    for commands in (
        r"beta|egin|ar|inom|ig\w*|oxed|oldsymbol|ullet|mod|ot|f|m",
        r"frac|orall|lat|box",
        r"times|ext\w*|heta|au|ilde|riangle|frac|anh?|op?|herefore",
        r"nabla|eq|ot(?:in)?|u|mid|leq|geq|exists",
        r"rho|ight\w*|angle|ceil|floor|m",
    )
)
r"""The LaTeX commands that begin like an escape of JSON: \beta, \frac, \times, \nabla, \rho."""
_ESCAPE = re.compile(rf'\\(?:(?P<latex>{_LATEX})|["\x27\\/bfnrt]|u[0-9A-Fa-f]{{4}}|(?P<unknown>))')
_IN_TEXT = re.compile(r"\\(.)|\"", re.DOTALL)


def with_latex(body: str) -> str:
    r"""A text in which the backslashes of LaTeX commands are escaped: of `\alpha`, which JSON doesn't allow, and of
    `\frac`, which would be a form feed and "rac"."""
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda match: match[0] if match["latex"] is match["unknown"] else f"\\{match[0]}", body)


def as_json(text: str, start: int) -> tuple[str, int] | None:
    """The object or list that begins at a place as strict JSON, and the place of its end; None if it has no end, or two
    values in a row."""
    parts, depth, place = list[str](), 0, start
    while token := _TOKEN.match(text, place):
        place = token.end()
        written = token[0]
        if token["skipped"]:
            continue
        if parts and parts[-1] not in _BEFORE_VALUE and (not token["mark"] or written in "{["):
            return None
        if token["text"]:
            written = f'"{_IN_TEXT.sub(_escaped, with_latex(written[1:-1]))}"'
        elif token["word"]:
            written = _CONSTANTS.get(written, _BARE_DECIMAL.sub("0.", written))
        elif written == ":":
            if parts and _KEY.fullmatch(parts[-1]):
                parts[-1] = f'"{parts[-1]}"'
        elif written in "{[":
            depth += 1
            if depth > _MOST_NESTED:
                return None
        elif written in "]}":
            depth -= 1
            if parts[-1] == ",":
                parts.pop()
        parts.append(written)
        if not depth:
            return "".join(parts), place
    return None


def _escaped(match: re.Match[str]) -> str:
    """A character inside a text, as JSON has it: `"` is escaped, and `\\'` isn't."""
    return '\\"' if match[0] == '"' else "'" if match[1] == "'" else match[0]
