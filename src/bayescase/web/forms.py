"""The fields of a form as clean text."""

import unicodedata

from starlette.exceptions import HTTPException
from starlette.requests import Request


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form as clean text; the last one of a name counts."""
    try:
        form = await request.form(max_files=0, max_fields=200)
    except (ValueError, AssertionError, KeyError) as error:
        raise HTTPException(400) from error
    return {name: clean(value) for name, value in form.multi_items() if isinstance(value, str)}


def clean(text: str) -> str:
    """Without control characters and halves of letters, which no database and no file should have to hold."""
    return "".join(c for c in text.replace("\r\n", "\n") if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
