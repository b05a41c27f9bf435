"""plugrad: tensors that are computed when a value is asked for, on any device with a plugin.

    import plugrad as pg
    x = pg.Tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x).relu().numpy())
"""
from . import _backend
from ._version import __version__

_backend.prepare()  # the module's libraries are there, and its search path has every plugin

from . import _plugrad  # noqa: E402
from ._plugrad import *  # noqa: E402, F403
from .errors import *  # noqa: E402, F403
from . import data as data, distributed as distributed, nn as nn, onnx as onnx, optim as optim  # noqa: E402
from ._progress import progress as progress  # noqa: E402
from ._scopes import no_grad as no_grad  # noqa: E402
from .nn import from_torch_state as from_torch_state  # noqa: E402
