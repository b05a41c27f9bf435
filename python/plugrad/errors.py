"""Exceptions: plugrad's kinds of errors, as subclasses of Python's own.

Every message is "[operation] what failed, on what, and what to do".
"""


class Error(Exception):
    """Base of plugrad's exceptions."""

    #: The lines of the program that recorded what failed when it was computed, such as "train.py:31, in step"; the
    #: message ends with them. Empty where the traceback shows the line.
    recorded_at: tuple[str, ...] = ()


class UserError(Error, ValueError):
    """An argument, a file or a setting is wrong: change the input."""


class UserIndexError(UserError, IndexError):
    """An index or axis is out of range."""


class UserTypeError(UserError, TypeError):
    """The function does not take this dtype."""


class UserOverflowError(UserError, OverflowError):
    """The dtype does not hold this number."""


class UnsupportedError(Error, NotImplementedError):
    """The request is sound, but this device or version cannot do it."""


class DeviceError(Error, RuntimeError):
    """A plugin or its device reported a failure."""


class OutOfMemoryError(DeviceError, MemoryError):
    """Memory of a device, or PLUGRAD_MEMORY_LIMIT, is used up. Nothing was allocated."""

    #: Bytes that were asked for.
    size_bytes: int = 0


class CompileError(DeviceError):
    """A device's compiler refused a kernel. The message shows the log and the numbered source."""

    #: The text of the kernel, and what the compiler said.
    source: str = ""
    log: str = ""


class InternalError(Error, RuntimeError):
    """A bug in plugrad."""
