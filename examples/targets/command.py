"""A command as a target: it reads a sample from stdin and writes its answer to stdout, both as JSON.

The command may be a program in any language. Here it is a line of awk, which finds the name in the JSON.
"""

from __future__ import annotations

from pathlib import Path

from evalstone import evaluate

CASES = Path(__file__).with_name("cases.jsonl")
PROGRAM = """awk '{ year = /Ada/ ? 1815 : /Alan/ ? 1912 : 1906; print "{\\"output\\": \\"In " year ".\\"}" }'"""

if __name__ == "__main__":
    run = evaluate(CASES, "contains", target=f"cmd:{PROGRAM}", ledger=None)
    print(run)
