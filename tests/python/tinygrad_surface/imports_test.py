"""The names that tests of tinygrad import are there: run by run.py, as those tests are."""
import unittest

import numpy as np
from test.helpers import (assert_jit_cache_len, assert_kernel_count, check_schedule,
                          is_hcq2_device, needs_second_gpu, not_support_multi_device, slow)
from tinygrad import Context, Device, GlobalCounters, Tensor, TinyJit, Variable, dtypes, nn
from tinygrad.device import is_dtype_supported
from tinygrad.engine.jit import JitError
from tinygrad.engine.realize import run_linear
from tinygrad.helpers import (AMD_LLVM, CI, CPU_LLVM, DEBUG, DEV, EMULATE, IMAGE, getenv, prod,
                              temp)
from tinygrad.nn import (BatchNorm, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, Embedding,
                         GroupNorm, InstanceNorm, LayerNorm, LayerNorm2d, Linear, LSTMCell,
                         RMSNorm)
from tinygrad.nn.state import load_state_dict
from tinygrad.renderer.nir import NIRRenderer
from tinygrad.tensor import _to_np_dtype
from tinygrad.uop.ops import KernelInfo, Ops, UOp


class TestImports(unittest.TestCase):
    def test_settings(self) -> None:
        self.assertEqual(getenv("NO_SUCH_SETTING", 3), 3)
        self.assertEqual(prod((2, 3)), 6)
        self.assertIn(Device.DEFAULT, str(Tensor([1]).device) + Device.DEFAULT)
        with Context(DEBUG=2):
            self.assertEqual(int(DEBUG), 2)
        self.assertIsNotNone((CI, DEV, IMAGE, GlobalCounters.kernel_count, temp("x"), NIRRenderer))
        self.assertFalse(CPU_LLVM or AMD_LLVM or EMULATE or DEV.renderer or is_hcq2_device())
        assert_kernel_count(1)
        assert_jit_cache_len(None, 1)
        check_schedule(Tensor([1.0]), 1)

    def test_the_graph_of_tinygrad_is_skipped(self) -> None:
        for used in (lambda: Ops.ADD, lambda: UOp(), lambda: KernelInfo(name="x"),
                     lambda: Tensor([1]).uop.base, run_linear):
            self.assertRaises(unittest.SkipTest, used)
        self.assertTrue(slow(used) is used and not_support_multi_device())
        self.assertRaises(unittest.SkipTest, needs_second_gpu(print))

    def test_layers_keep_their_state(self) -> None:
        x = Tensor(np.linspace(-1, 1, 2 * 4 * 3 * 3, dtype=np.float32)).reshape(2, 4, 3, 3)
        for make in (lambda: Conv2d(4, 2, 3), lambda: ConvTranspose2d(4, 2, 3),
                     lambda: BatchNorm(4), lambda: GroupNorm(2, 4), lambda: InstanceNorm(4),
                     lambda: LayerNorm(3), lambda: LayerNorm2d(4), lambda: RMSNorm(3),
                     lambda: Linear(3, 2)):
            layer, other = make(), make()
            load_state_dict(other, nn.state.get_state_dict(layer))
            np.testing.assert_allclose(layer(x).numpy(), other(x).numpy(), rtol=1e-5, atol=1e-6)
        for layer in (Conv1d(3, 2, 3), ConvTranspose1d(3, 2, 3)):
            self.assertEqual(layer(x[0]).shape[1], 2)
        self.assertEqual(Embedding(5, 3)(Tensor([1, 4])).shape, (2, 3))
        h, c = LSTMCell(3, 2)(x[0, 0])
        self.assertEqual(h.shape, c.shape)

    def test_batches_without_running_statistics(self) -> None:
        x = Tensor(np.arange(24, dtype=np.float32)).reshape(4, 2, 3)
        y = BatchNorm(2, track_running_stats=False)(x).numpy()
        np.testing.assert_allclose(y.mean((0, 2)), 0, atol=1e-6)

    def test_dtypes(self) -> None:
        self.assertIs(_to_np_dtype(dtypes.half), np.float16)
        self.assertTrue(is_dtype_supported(dtypes.float))
        self.assertTrue(dtypes.is_float(dtypes.bfloat16) and dtypes.is_int(dtypes.uchar))

    def test_what_tinygrad_refuses(self) -> None:
        x, index = Tensor.ones(4, 3), Tensor([[0, 1, 2]])
        for error, call in (
                (RuntimeError, lambda: x.meshgrid(indexing="typo")),
                (TypeError, lambda: x[:Tensor([3]), 1]),
                (TypeError, lambda: x.__setitem__(slice(Tensor([0]), 2), 1.0)),
                (RuntimeError, lambda: x.half().scatter(0, index, x)),
                (RuntimeError, lambda: x.half().scatter_reduce(0, index, x, "sum")),
                (ValueError, lambda: Conv2d(2, 3, 2, stride=2, padding="same")),
                (ValueError, lambda: Conv2d(2, 3, 2, padding="typo")),
                (ValueError, lambda: Tensor.stack((x, x), x))):
            self.assertRaises(error, call)

    def test_forms_of_arguments(self) -> None:
        x = Tensor(np.arange(12, dtype=np.float32)).reshape(3, 4)
        self.assertEqual(x.reshape((None, 2, 2)).shape, (3, 2, 2))
        self.assertEqual(Tensor([-7, 7]).idiv(2).tolist(), [-3, 3])
        self.assertEqual(Tensor(2**64 - 1, dtype=dtypes.uint64).idiv(1).item(), 2**64 - 1)
        self.assertEqual((dtypes.min(dtypes.int), dtypes.max(dtypes.int)), (-2**31, 2**31 - 1))
        self.assertEqual((dtypes.max(dtypes.half), dtypes.min(dtypes.bool)), (np.inf, False))
        self.assertIsNone(Device[Device.DEFAULT].renderer)
        padded = x.pad((3, -5, 1, -1), mode="replicate")
        self.assertEqual(padded.tolist(), [[0, 0], [0, 0], [4, 4]])

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
            rows = Tensor.arange(20).reshape(2, 10)
            bound = size.bind(value)
            self.assertEqual(rows[:, :bound].shape, (2, value))
            self.assertEqual(rows[0, bound:bound + 2].tolist(), [value, value + 1])
            self.assertEqual(rows.shrink((None, (bound, bound + 1))).tolist(),
                             [[value], [value + 10]])

    def test_errors_of_jitted_functions(self) -> None:
        add = TinyJit(lambda a, b: (a + b).realize())
        for _ in range(3):
            add(Tensor.ones(3, 2), Tensor.ones(3, 2))
        self.assertRaises(JitError, add, Tensor.ones(3, 2), Tensor.ones(4, 2))

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
