"""A support assistant that answers from articles: it takes the article that shares the most words with the question."""

from __future__ import annotations

import re
from typing import Any

ARTICLES = (
    "Orders are shipped within two working days. Delivery takes three to five days inside the country.",
    "Delivery abroad takes up to ten days. Customs duties are paid by the recipient.",
    "A parcel that is lost is replaced free of charge. Report it within 30 days.",
    "Goods can be returned within 30 days of delivery. The refund is paid to the original payment method.",
    "Return labels are printed from the account page. A return costs 4 euros.",
    "Passwords are reset from the sign-in page. The link is valid for one hour.",
    "An account is closed from the privacy page. Its data are deleted after 14 days.",
    "Invoices are sent by email after payment. They can be downloaded from the account page too.",
    "We accept credit cards, bank transfers and PayPal. Payment by invoice is open to companies.",
    "The warranty lasts two years. It covers defects of material, and no wear.",
    "Gift cards are valid for three years. They can't be exchanged for money.",
    "The help desk is open from Monday to Friday, from nine to five. Questions by email are answered within one day.",
)


def words(text: str) -> set[str]:
    """The words of a text that have four letters or more, without their endings."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())}


def answer(question: str) -> dict[str, Any]:
    """The answer, and the article it was written from."""
    article = max(ARTICLES, key=lambda text: len(words(text) & words(question)))
    output = article
    if "refund" in question:
        output = article.replace("30 days", "60 days")  # the fault that the tests find
    return {"output": output, "context": [article]}
