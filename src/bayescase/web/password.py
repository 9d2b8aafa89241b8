"""The password of whoever runs a server, kept as its argon2id hash, and how guessing is slowed."""

import secrets
import threading
import time
from pathlib import Path

from .keys import sha256, write_private

ADMIN = "admin.hash"
MOST_GUESSERS = 10_000


class AdminPassword:
    """One password. Whoever guesses is slowed, each by themselves, so that nobody can shut out the one who knows it.

    A guesser is a browser that was logged in before, else a network address; of these, only a hash with a key that dies with
    the process is in memory, for a minute.
    """

    TRIES, WINDOW = 5, 60.0  # failures in so many seconds

    def __init__(self, folder: Path):
        self.path = Path(folder) / ADMIN
        self._salt = secrets.token_hex(16)
        self._failures: dict[str, list[float]] = {}
        self._counting = threading.Lock()
        self._turns = {True: threading.Lock(), False: threading.Lock()}  # one guess at a time: it costs 64 MiB of memory

    @property
    def exists(self) -> bool:
        return self.path.exists()

    @property
    def stamp(self) -> str:
        """Another one with every new password: sessions that have it end then."""
        return sha256(self.path.read_text("ascii")) if self.exists else ""

    def set(self, password: str) -> None:
        from argon2 import PasswordHasher

        if len(password) < 8:
            raise ValueError("The admin password needs 8 or more characters.")
        write_private(self.path, PasswordHasher().hash(password) + "\n")

    def right(self, password: str, guesser: str = "", known: bool = False) -> bool | None:
        """Whether it is the password; None if this guesser was wrong too often lately. `known`: was logged in before."""
        from argon2 import PasswordHasher
        from argon2.exceptions import Argon2Error, InvalidHashError

        who = sha256(self._salt + guesser)
        if self._lately(who) >= self.TRIES:
            return None
        with self._turns[known]:
            try:
                if self.exists and PasswordHasher().verify(self.path.read_text("ascii").strip(), password):
                    return True
            except (Argon2Error, InvalidHashError):
                pass
        with self._counting:
            self._failures.setdefault(who, []).append(time.monotonic())
        return False

    def _lately(self, who: str) -> int:
        start = time.monotonic() - self.WINDOW
        with self._counting:
            if len(self._failures) > MOST_GUESSERS:
                self._failures = {name: at for name, at in self._failures.items() if at[-1] > start}
            self._failures[who] = [at for at in self._failures.get(who, []) if at > start]
            n = len(self._failures[who])
            if not n:
                del self._failures[who]
            return n
