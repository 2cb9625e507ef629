"""What a text that somebody reads does not say: passwords in addresses, and options that hold secrets.

Invariant: an error, a table, a plan or a log that names an address shows whose it is, never the password. Statements
that are kept to be carried out again (the log of a folder, `.save`) hold what was written.
"""

from __future__ import annotations

import re

HIDDEN = "***"

# Bounds of lengths keep the time linear, whatever the text.
_USER = re.compile(r"""(://[^\s:@/?\#'"\[]{0,200}):(?![0-9]{0,5}[/?\#])(?:[^\s/?\#'"]{0,500}|[^\s'"]{0,500})@""")
"""`//user:password@`, also of a password that holds a slash, which no address may."""
_NAMES = (
    r"(?:ssl)?password|passwd|passphrase|pwd|secret|secret_?(?:access_?)?key|account_?key|api_?key"
    r"|(?:access|auth|refresh|sas|session|security)_?token|credentials?|sig"
    r"|x-amz-(?:credential|security-token|signature)"
)
_PARAMETER = re.compile(
    rf"""((?:(?:^|[?&;\s'"])(?:{_NAMES})|[?&](?:auth|key|signature|token))=)[^&;\s'"\#]+""", re.IGNORECASE
)
"""`?password=..`, and what libraries take: `host=.. password=..`."""
_OPTION = re.compile(
    rf"((?:\b(?:{_NAMES})"
    r"|\bhttp\.[\w.-]{1,60}|\b(?:kafka|s3)\.[\w.-]{0,40}(?:password|secret|token|key|jaas|oauth)[\w.-]{0,40})"
    r"""[`"']?\s{0,20}[=:]\s{0,20})(?:'(?:[^']|'')*'|"[^"]*")""",
    re.IGNORECASE,
)
"""Of WITH (..), and of dictionaries."""


def masked(text: str) -> str:
    """The text as it may be shown.

    >>> masked("cannot read 'https://host/a.csv?token=1' and smb://ann:secret@host/share")
    "cannot read 'https://host/a.csv?token=***' and smb://ann:***@host/share"
    >>> masked("WITH (`kafka.sasl.password` = 'it''s', `http.Authorization` = 'Bearer x', retry = 5)")
    "WITH (`kafka.sasl.password` = '***', `http.Authorization` = '***', retry = 5)"
    >>> masked("postgresql://db/shop?user=ann&password=secret&sslmode=require")
    'postgresql://db/shop?user=ann&password=***&sslmode=require'
    """
    text = without_password(text)
    if "=" in text:
        text = _PARAMETER.sub(rf"\1{HIDDEN}", text)
    return _OPTION.sub(rf"\1'{HIDDEN}'", text) if "'" in text or '"' in text else text


def without_password(text: str) -> str:
    """The same of `user:password@` alone: what else tells an address from others stays."""
    return _USER.sub(rf"\1:{HIDDEN}@", text) if "@" in text else text
