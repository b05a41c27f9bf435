// Operators of com.microsoft that join several of ONNX. Source of their meaning: the schemas of
// ONNX Runtime 1.32.
#include <numeric>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/transformer/attention.h"

namespace plugrad::onnx {
namespace {

struct Normalised {
  Tensor result, mean, inverse;
};

// Over the axes from `axis` on; `is_simple`: by the root of the mean square, without a mean.
Normalised normalised(const Tensor& x, int64_t axis, bool is_simple, double epsilon) {
  Integers axes;
  for (int64_t i = axis < 0 ? axis + x.ndim() : axis; i < x.ndim(); ++i) axes.push_back(i);
  const Tensor wide = widened(x);
  const Tensor mean = is_simple ? Tensor() : wide.mean(axes, true);
  const Tensor centred = is_simple ? wide : wide - mean;
  const Tensor inverse = (centred.square().mean(axes, true) + epsilon).rsqrt();
  return {centred * inverse, mean, inverse};
}

Values simplified_layer_normalization(Call& call) {
  call.require_broadcasts_to(call[0], 1, "scale");
  const Normalised n =
      normalised(call[0], call.integer("axis", -1), true, call.number("epsilon", 1e-5));
  return {(n.result * widened(call[1])).cast(call[1].dtype()), n.inverse};
}

Values with_skip(Call& call, bool is_simple) {
  const Tensor x = call[0], gamma = call[2];
  const size_t bias = is_simple ? 3 : 4;
  call.require_broadcasts_to(x, 1, "skip");
  call.require_shape(2, "gamma", {x.size(-1)});
  if (!is_simple && call.has(3)) call.require_shape(3, "beta", {x.size(-1)});
  Tensor sum = x + call[1];
  if (call.has(bias)) {
    call.require_shape(bias, "bias", {x.size(-1)});
    sum = sum + call[bias];
  }
  const Normalised n = normalised(sum, -1, is_simple, call.number("epsilon", 1e-5));
  Tensor result = n.result * widened(gamma);
  if (!is_simple && call.has(3)) result = result + widened(call[3]);
  return {result.cast(x.dtype()), is_simple ? Value() : Value(n.mean), n.inverse, sum};
}
Values skip_layer_normalization(Call& call) {
  return with_skip(call, false);
}
Values skip_simplified_layer_normalization(Call& call) {
  return with_skip(call, true);
}

// The sum of the embeddings of words, positions and segments, normalised.
Values embed_layer_normalization(Call& call) {
  const Tensor ids = call[0];
  Tensor sum = call[2].index_select(0, ids);
  sum = sum + (call.has(8) ? call[3].index_select(0, call[8]) : call[3].slice(0, {0, ids.size(1)}));
  if (call.has(1)) sum = sum + call[4].index_select(0, call[1]);
  const Tensor result = normalised(sum, -1, false, call.number("epsilon", 1e-12)).result;
  const Tensor length =
      call.has(7) ? call[7].sum(1).cast(DType::I32) : Tensor::zeros({ids.size(0)}, DType::I32);
  return {(result * widened(call[5]) + widened(call[6])).cast(sum.dtype()), length, sum};
}

Values bias_gelu(Call& call) {
  call.require_shape(1, "B", {call[0].size(-1)});
  return {(call[0] + call[1]).gelu(false)};
}
Values fast_gelu(Call& call) {
  if (call.has(1)) call.require_shape(1, "bias", {call[0].size(-1)});
  return {(call.has(1) ? call[0] + call[1] : call[0]).gelu(true)};
}
Values quick_gelu(Call& call) {
  const Tensor x = call[0];
  return {x * (x * call.number("alpha", 1.702)).sigmoid()};
}

// An operand of a product: first the first axis may go before the last one, then the last two swap.
Tensor operand(const Tensor& x, bool moves_first, bool swaps) {
  Tensor moved = x;
  if (moves_first && x.ndim() > 2) {
    Integers order(static_cast<size_t>(x.ndim()));
    std::iota(order.begin(), order.end() - 2, 1);
    order[order.size() - 2] = 0;
    order.back() = x.ndim() - 1;
    moved = x.permute(order);
  }
  return swaps && x.ndim() > 1 ? moved.transpose() : moved;
}
Values fused_mat_mul(Call& call) {
  const auto is_set = [&](std::string_view name) { return call.integer(name, 0) != 0; };
  const Tensor a = operand(call[0], is_set("transBatchA"), is_set("transA"));
  const Tensor b = operand(call[1], is_set("transBatchB"), is_set("transB"));
  const double alpha = call.number("alpha", 1);
  const Tensor product = a.matmul(b);
  return {alpha == 1 ? product : (product * alpha).cast(product.dtype())};
}

// Numbers of `bits` bits from bytes, the lowest bits first, as a longer last axis.
Tensor unpacked(const Tensor& bytes, int64_t bits) {
  if (bits == 8) return bytes.cast(DType::I32);
  Shape shape = bytes.shape();
  shape.back() *= 8 / bits;
  const Tensor shifts = Tensor::arange(8 / bits, DType::I32) * bits;
  const Tensor mask = Tensor((int64_t{1} << bits) - 1).cast(DType::I32);
  return ((bytes.cast(DType::I32).unsqueeze(-1) >> shifts) & mask).reshape(shape);
}

// Weights of a few bits in blocks along the inputs, each with its scale and zero point.
Values mat_mul_n_bits(Call& call) {
  const Tensor x = call[0], packed = call[1];
  const int64_t bits = call.integer("bits", 4), block = call.integer("block_size", 0);
  const int64_t n = call.integer("N", 0), k = call.integer("K", 0);
  if (bits != 2 && bits != 4 && bits != 8) call.unsupported(fmt::format("{} bits", bits));
  if (block <= 0) call.wrong("block_size must be positive");
  if (call.integer("weight_prepacked", 0) != 0)
    call.unsupported("weights in the layout of one device; export them with weight_prepacked=0");
  const int64_t blocks = (k + block - 1) / block;
  Tensor product;
  if (packed.numel() == 0) {  // a projection that the model leaves out
    Shape shape = x.shape();
    shape.back() = n;
    product = Tensor::zeros(shape, x.dtype());
  } else {
    const Tensor scale = widened(call[2].reshape({n, blocks}));
    Tensor zero = Tensor(int64_t{1} << (bits - 1)).cast(scale.dtype()).expand({n, blocks});
    if (call.has(3))
      zero =
          call[3].dtype() == DType::U8
              ? unpacked(call[3].reshape({n, -1}), bits).slice(-1, {0, blocks}).cast(scale.dtype())
              : widened(call[3].reshape({n, blocks}));
    // The block of each input.
    const auto each = [&](const Tensor& parameter) {
      return call.has(4) ? parameter.index_select(1, call[4].slice(0, {0, k}))
                         : parameter.repeat_interleave(block, 1).slice(1, {0, k});
    };
    const Tensor numbers = unpacked(packed.reshape({n, blocks * block * bits / 8}), bits);
    const Tensor weight = (numbers.slice(1, {0, k}).cast(scale.dtype()) - each(zero)) * each(scale);
    product = x.matmul(weight.cast(x.dtype()).transpose());
  }
  return {call.has(5) ? product + call[5] : product};
}

constexpr OperatorRow kMicrosoftFusedRows[] = {
    {"BiasGelu", bias_gelu, kVariableSizes, kMicrosoft},
    {"EmbedLayerNormalization", embed_layer_normalization, false, kMicrosoft},
    {"FastGelu", fast_gelu, kVariableSizes, kMicrosoft},
    {"FusedMatMul", fused_mat_mul, false, kMicrosoft},
    {"MatMulNBits", mat_mul_n_bits, false, kMicrosoft},
    {"QuickGelu", quick_gelu, false, kMicrosoft},
    {"SimplifiedLayerNormalization", simplified_layer_normalization},
    {"SimplifiedLayerNormalization", simplified_layer_normalization, false, kMicrosoft},
    {"SkipLayerNormalization", skip_layer_normalization, false, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", skip_simplified_layer_normalization, false, kMicrosoft},
};

}  // namespace

std::span<const OperatorRow> microsoft_fused_operators() {
  return kMicrosoftFusedRows;
}

}  // namespace plugrad::onnx
