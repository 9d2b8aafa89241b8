"""The password of whoever runs a server, kept as its argon2id hash."""

import threading
import time
from pathlib import Path

from .keys import write_private

ADMIN = "admin.hash"


class AdminPassword:
    """One password, kept as its argon2id hash. Guessing is slowed for everyone alike, since no addresses are kept."""

    TRIES, WINDOW = 5, 60.0  # failures in so many seconds

    def __init__(self, folder: Path):
        self.path = Path(folder) / ADMIN
        self._failures: list[float] = []
        self._lock = threading.Lock()

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def set(self, password: str) -> None:
        from argon2 import PasswordHasher

        if len(password) < 8:
            raise ValueError("The admin password needs 8 or more characters.")
        write_private(self.path, PasswordHasher().hash(password) + "\n")

    def right(self, password: str) -> bool | None:
        """Whether it is the password; None if there were too many wrong ones lately."""
        from argon2 import PasswordHasher
        from argon2.exceptions import Argon2Error, InvalidHashError

        with self._lock:  # one at a time: a guess costs 64 MiB of memory
            self._failures = [at for at in self._failures if at > time.monotonic() - self.WINDOW]
            if len(self._failures) >= self.TRIES:
                return None
            try:
                if self.exists and PasswordHasher().verify(self.path.read_text("ascii").strip(), password):
                    return True
            except (Argon2Error, InvalidHashError):
                pass
            self._failures.append(time.monotonic())
            return False
