"""plugrad: tensors that are computed when a value is asked for, on any device with a plugin.

    import plugrad as pg
    x = pg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x).relu().numpy())
"""
from . import _plugrad
from ._plugrad import *  # noqa: F403
from .errors import (CompileError, DeviceError, Error, InternalError, OutOfMemoryError,
                     UnsupportedError, UserError, UserIndexError, UserOverflowError, UserTypeError)
from . import data, nn, optim  # noqa: E402
from ._progress import progress
from .nn import from_torch_state

__version__ = "1.0.0"
