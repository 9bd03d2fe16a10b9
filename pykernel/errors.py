"""What a user can do something about."""


class UserError(ValueError):
    """Bad input: one sentence that says what was wrong, where, and what would be right.  The command exits with 2."""


class UntrustedCode(UserError):
    """A spec names code that would be executed, and nobody has said that it may be."""


class MissingExtra(UserError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional package; install it with: pip install 'pykernel-mcu[{extra}]'")


class CheckFailed(Exception):
    """The device's code does not compute what the host computes.  The command exits with 1."""
