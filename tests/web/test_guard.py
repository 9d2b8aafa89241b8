"""What a request must pass."""

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from bayescase.web.guard import same_origin

HOST = "http://study.test"
ORIGINS = [
    ({"sec-fetch-site": "same-origin"}, True),
    ({"sec-fetch-site": "none"}, True),
    ({"sec-fetch-site": "same-site", "origin": HOST}, False),
    ({"sec-fetch-site": "cross-site", "origin": HOST}, False),
    ({"sec-fetch-site": "rubbish"}, False),
    ({"origin": HOST}, True),
    ({"origin": HOST.replace("http", "https")}, True),  # a proxy speaks HTTPS
    ({"origin": "http://evil.test"}, False),
    ({"origin": f"{HOST}.evil.test"}, False),
    ({"origin": f"{HOST}:8001"}, False),
    ({"origin": "null"}, False),
    ({"origin": "null", "referer": f"{HOST}/study"}, True),
    ({"referer": f"{HOST}/study"}, True),  # browsers older than 2020
    ({"referer": "http://evil.test/study.test"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("headers", "ours"), ORIGINS)
def test_forms_of_other_sites_are_refused(headers, ours):
    given = {name.encode(): value.encode() for name, value in (headers | {"host": "study.test"}).items()}
    assert same_origin(given) == ours
    assert (
        not same_origin({name: value for name, value in given.items() if name != b"host"} | {b"host": b""})
        or "sec-fetch-site" in headers
    )
