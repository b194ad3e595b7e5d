"""Tests of blanking what looks like a credential in a text, and nothing else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.redaction import redacted

# Put together here, so that no scanner of repositories takes them for real ones.
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nabc==\n-----END RSA " + "PRIVATE KEY-----"
HIDDEN = "h1dden"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"GET https://ann:{HIDDEN}@shop.example/a?b=1 failed", "GET https://***@shop.example/a?b=1 failed"),
        (f"postgresql://app:p@{HIDDEN}@db:5432/x", "postgresql://***@db:5432/x"),
        (f"https://{HIDDEN}@host/x", "https://***@host/x"),
        (f"https://host/x?api_key={HIDDEN}&page=2", "https://host/x?api_key=***&page=2"),
        (f"https://host/x?X-Amz-Signature={HIDDEN}&y=1", "https://host/x?X-Amz-Signature=***&y=1"),
        (f"https://host/x?sig={HIDDEN}%2Fa", "https://host/x?sig=***"),
        (f"Authorization: Bearer abc.{HIDDEN}", "Authorization: Bearer ***"),
        (f"authorization: {HIDDEN}", "authorization: ***"),
        (f"Bearer {HIDDEN}{HIDDEN} was refused", "Bearer *** was refused"),
        (f"Basic dXNlcjp{HIDDEN}=", "Basic ***"),
        (f"password={HIDDEN};host=db", "password=***;host=db"),
        (f"PGPASSWORD={HIDDEN} psql", "PGPASSWORD=*** psql"),
        (f"db_password: {HIDDEN}", "db_password: ***"),
        (f"the password: {HIDDEN} is wrong", "the password: *** is wrong"),
        (f'{{"password": "{HIDDEN} with spaces", "user": "ann"}}', '{"password": ***, "user": "ann"}'),
        (f"{{'client_secret': '{HIDDEN}'}}", "{'client_secret': ***}"),
        (f"mysql --password {HIDDEN} -u root", "mysql --password *** -u root"),
        (f"aws_secret_access_key = {HIDDEN}/+x", "aws_secret_access_key = ***"),
        (f"Set-Cookie: sid-{HIDDEN}; Path=/", "Set-Cookie: ***; Path=/"),
        ("key sk-proj-" + "a1B2" * 8 + " is not valid", "key *** is not valid"),
        ("sk_live_" + "a1B2" * 6, "***"),
        ("ghp_" + "a1B2" * 9, "***"),
        ("xoxb-" + "1234-abcd" * 3, "***"),
        ("AKIA" + "ABCD1234EFGH5678", "***"),
        ("AIza" + "a1B2_-" * 6, "***"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "***"),
        (f"before {KEY} after", "before *** after"),
        (f"before {KEY[:50]}", "before ***"),
        (f"abc==\n{KEY[-30:]} after", "*** after"),
    ],
)
def test_what_looks_like_a_credential_is_blanked(text: str, shown: str) -> None:
    """Each kind goes; what stands around it stays, so that the sentence still helps."""
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "token is missing; limit should be a valid integer",
        "the password is wrong",
        "password: is missing",
        "password: should be a string, not null",
        "max_tokens=500 is more than the 200 tokens: too many",
        "the secretary: Ann",
        "https://shop.example/orders?page=2#top",
        "write to ann@example.com at 10:30",
        "order A1 is gone (key order-7)",
        "Bearer authentication required",
        "basic arithmetic failed",
        "it violates the constraint pk_customer_orders_and_lines, index sk_customer_orders_and_lines",
        "task-force sk-8 risk_high",
        "postgresql://db:5432/x",
        "the tool did not answer within 8.0 s",
    ],
)
def test_ordinary_sentences_stay_as_they_are(text: str) -> None:
    """A failure's sentence must still say what to do."""
    assert redacted(text) == text


PIECES = [*"abA1:=@/-_. \n\"'?&{}", "password", "token", "://", "Bearer ", "sk-", "a1B2c3D4e5", "--password ", "?key="]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """What was blanked is not taken for a secret again."""
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "piece",
    ["a", "-", "password", "password=", "://", "://a", "@", "eyJ", "eyJa.", "-----BEGIN PRIVATE KEY", "Bearer ", "?key",
     "sk-", "&", '"', "password:  ", "-----END ", "- "],
)  # fmt: skip
def test_hostile_texts_take_no_longer_than_others(piece: str) -> None:
    """No pattern goes back over the text again and again: 64,000 characters take well below a second."""
    text = piece * (64_000 // len(piece))
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 1
