"""The names that tests of tinygrad import are there: run by run.py, as those tests are."""
import unittest

import numpy as np
from tinygrad import Context, Device, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from tinygrad.device import is_dtype_supported
from tinygrad.helpers import CI, DEBUG, DEV, IMAGE, getenv, prod
from tinygrad.tensor import _to_np_dtype


class TestImports(unittest.TestCase):
    def test_settings(self) -> None:
        self.assertEqual(getenv("NO_SUCH_SETTING", 3), 3)
        self.assertEqual(prod((2, 3)), 6)
        self.assertIn(Device.DEFAULT, str(Tensor([1]).device) + Device.DEFAULT)
        with Context(DEBUG=2):
            self.assertEqual(int(DEBUG), 2)
        self.assertIsNotNone((CI, DEV, IMAGE, GlobalCounters.kernel_count))

    def test_dtypes(self) -> None:
        self.assertIs(_to_np_dtype(dtypes.half), np.float16)
        self.assertTrue(is_dtype_supported(dtypes.float))
        self.assertTrue(dtypes.is_float(dtypes.bfloat16) and dtypes.is_int(dtypes.uchar))

    def test_jit_runs_the_function_twice(self) -> None:
        calls = 0

        @TinyJit
        def double(x: Tensor) -> Tensor:
            nonlocal calls
            calls += 1
            return x * 2

        for value in range(4):
            self.assertEqual(double(Tensor([value])).tolist(), [2 * value])
        self.assertEqual(calls, 2)

    def test_variable_sizes(self) -> None:
        size = Variable("size", 1, 10)
        ones = Tensor.ones(10).contiguous()
        for value in (2, 5):
            part = ones[:size.bind(value)]
            self.assertEqual(part.sum().item(), value)
            self.assertEqual((part + 1).contiguous()[:value].tolist(), [2.0] * value)

    def test_layers_learn(self) -> None:
        layers = [nn.Linear(4, 8), Tensor.relu, nn.Linear(8, 1)]
        optimizer = nn.optim.SGD(nn.state.get_parameters(layers), lr=0.1)
        x, losses = Tensor(np.eye(4, dtype=np.float32)), []
        for _ in range(5):
            optimizer.zero_grad()
            loss = (x.sequential(layers) - 1).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    unittest.main()
