"""Keys and tokens: a secret file per folder, and keyed hashes made from it."""

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

KEY = "secret.key"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Keys:
    """Keyed hashes, one family per purpose. The key never leaves the study's folder."""

    def __init__(self, key: bytes):
        self._key = key

    def digest(self, purpose: str, *parts: str | int) -> str:
        return hmac.new(self._key, json.dumps([purpose, *parts]).encode(), "sha256").hexdigest()

    def matches(self, given: str, purpose: str, *parts: str | int) -> bool:
        return hmac.compare_digest(given.encode(), self.digest(purpose, *parts).encode())


def read_keys(folder: Path) -> Keys:
    """The key of a folder; made, for its owner's eyes only, if there is none."""
    path = Path(folder) / KEY
    if not path.exists():
        fresh = Path(folder) / f".{KEY}.{secrets.token_hex(4)}"
        write_private(fresh, secrets.token_hex(32) + "\n")
        try:
            os.link(fresh, path)  # whole, and only if no other process was faster
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    key = path.read_text("ascii").strip()
    if len(key) != 64:
        raise ValueError(f"{path} is damaged: restore it from a copy; without it, people are not known again.")
    return Keys(bytes.fromhex(key))


def write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
