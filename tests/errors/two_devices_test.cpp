// Operands on two devices, and shapes that do not fit: the message names the function that was
// called, not one that it consists of.
#include <functional>

#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::StartsWith;

// x is on another device than the rest.
struct Operands {
  Tensor x, y, labels, mask, weight, row;
};

struct Row {
  const char* name;
  std::function<void(const Operands&)> call;
};

#define PLUGRAD_CALL(expression) [](const Operands& o) { static_cast<void>(expression); }

const std::vector<Row> kElementwise = {
    {"mod", PLUGRAD_CALL(o.x % o.y)},
    {"fmod", PLUGRAD_CALL(o.x.fmod(o.y))},
    {"floor_div", PLUGRAD_CALL(o.x.floor_div(o.y))},
    {"trunc_div", PLUGRAD_CALL(o.x.trunc_div(o.y))},
    {"le", PLUGRAD_CALL(o.x <= o.y)},
    {"ge", PLUGRAD_CALL(o.x >= o.y)},
    {"masked_fill", PLUGRAD_CALL(o.x.masked_fill(o.mask, 0))},
    {"lerp", PLUGRAD_CALL(o.x.lerp(o.y, 0.5))},
    {"isclose", PLUGRAD_CALL(o.x.isclose(o.y))},
    {"allclose", PLUGRAD_CALL(o.x.allclose(o.y))},
    {"clamp", PLUGRAD_CALL(o.x.clamp(o.y))},
    {"clamp", PLUGRAD_CALL(o.x.clamp(0, o.y))},
    {"prelu", PLUGRAD_CALL(o.x.prelu(o.row))},
    {"cat", PLUGRAD_CALL(cat({o.x, o.y}))},
    {"stack", PLUGRAD_CALL(stack({o.x, o.y}))},
};

const std::vector<Row> kNetworks = {
    {"matmul", PLUGRAD_CALL(matmul(o.x, o.y))},
    {"linear", PLUGRAD_CALL(linear(o.x, o.y))},
    {"linear", PLUGRAD_CALL(linear(o.x, o.x, o.row))},
    {"outer", PLUGRAD_CALL(outer(o.x[0], o.row))},
    {"inner", PLUGRAD_CALL(inner(o.x, o.y))},
    {"tensordot", PLUGRAD_CALL(tensordot(o.x, o.y, 1))},
    {"einsum", PLUGRAD_CALL(einsum("ij,jk->ik", {o.x, o.y}))},
    {"rmsnorm", PLUGRAD_CALL(rmsnorm(o.x, o.row))},
    {"groupnorm", PLUGRAD_CALL(groupnorm(o.x, 2, o.row, o.row))},
    {"instancenorm", PLUGRAD_CALL(instancenorm(o.x.reshape({1, 4, 4}), o.row, o.row))},
    {"batchnorm", PLUGRAD_CALL(batchnorm(o.x, o.row, o.row, o.row, o.row))},
    {"embedding", PLUGRAD_CALL(embedding(o.x, o.labels))},
    {"conv2d", PLUGRAD_CALL(conv2d(o.x.reshape({1, 1, 4, 4}), o.weight))},
    {"scaled_dot_product_attention", PLUGRAD_CALL(scaled_dot_product_attention(o.x, o.y, o.y))},
    {"index_select", PLUGRAD_CALL(o.x.index_select(0, o.labels))},
    {"index", PLUGRAD_CALL(o.x.index({o.labels}))},
    {"gather", PLUGRAD_CALL(o.x.gather(1, o.labels.reshape({4, 1})))},
    {"scatter", PLUGRAD_CALL(o.x.scatter(1, o.labels.reshape({4, 1}), o.x))},
    {"scatter_reduce",
     PLUGRAD_CALL(o.x.scatter_reduce(1, o.labels.reshape({4, 1}), o.x, Combine::Max))},
    {"setitem", PLUGRAD_CALL(Tensor(o.x).set_index({o.labels}, 1))},
};

const std::vector<Row> kLosses = {
    {"sparse_categorical_crossentropy",
     PLUGRAD_CALL(sparse_categorical_crossentropy(o.x, o.labels))},
    {"cross_entropy", PLUGRAD_CALL(cross_entropy(o.x, o.labels))},
    {"nll_loss", PLUGRAD_CALL(nll_loss(o.x, o.labels))},
    {"binary_crossentropy", PLUGRAD_CALL(binary_crossentropy(o.x, o.y))},
    {"binary_crossentropy_logits", PLUGRAD_CALL(binary_crossentropy_logits(o.x, o.y))},
    {"mse_loss", PLUGRAD_CALL(mse_loss(o.x, o.y))},
    {"l1_loss", PLUGRAD_CALL(l1_loss(o.x, o.y))},
    {"huber_loss", PLUGRAD_CALL(huber_loss(o.x, o.y))},
    {"smooth_l1_loss", PLUGRAD_CALL(smooth_l1_loss(o.x, o.y))},
    {"kl_div", PLUGRAD_CALL(kl_div(o.x, o.y))},
    {"margin_ranking_loss", PLUGRAD_CALL(margin_ranking_loss(o.x, o.y, o.y))},
    {"hinge_embedding_loss", PLUGRAD_CALL(hinge_embedding_loss(o.x, o.y))},
    {"cosine_similarity", PLUGRAD_CALL(cosine_similarity(o.x, o.y))},
};

const std::vector<Row> kLayers = {
    {"Linear", PLUGRAD_CALL(nn::Linear(4, 4)(o.x))},
    {"LayerNorm", PLUGRAD_CALL(nn::LayerNorm({4})(o.x))},
    {"RMSNorm", PLUGRAD_CALL(nn::RMSNorm({4})(o.x))},
    {"BatchNorm", PLUGRAD_CALL(nn::BatchNorm(4)(o.x))},
    {"GroupNorm", PLUGRAD_CALL(nn::GroupNorm(2, 4)(o.x))},
    {"Conv2d", PLUGRAD_CALL(nn::Conv2d(1, 2, 3)(o.x.reshape({1, 1, 4, 4})))},
    {"LSTMCell", PLUGRAD_CALL(nn::LSTMCell(4, 4)(o.x, {}))},
    {"MultiHeadAttention", PLUGRAD_CALL(nn::MultiHeadAttention(4, 2)(o.x))},
};

#undef PLUGRAD_CALL

Tensor stored(const Shape& shape, float value, std::string_view device = {}) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return Tensor::from(std::vector<float>(static_cast<size_t>(count), value), shape, device);
}

TEST(TwoDevices, TheFunctionThatWasCalledIsNamed) {
  const char* other = Tensor(1.0).device() == "CPU" ? "REFERENCE" : "CPU";
  Operands o;
  o.x = stored({4, 4}, 1, other);
  o.y = stored({4, 4}, 0.5);
  o.labels = Tensor::from({0, 1, 2, 3});
  o.mask = o.y > 0;
  o.weight = stored({2, 1, 3, 3}, 1);
  o.row = stored({4}, 1);
  for (const auto& rows : {kElementwise, kNetworks, kLosses, kLayers})
    for (const Row& row : rows)
      EXPECT_THAT(error_of([&] { row.call(o); }),
                  StartsWith("[" + std::string(row.name) + "] tensors are on "))
          << row.name;
}

TEST(TwoDevices, SoItIsForAxesAndSizes) {
  const Tensor x = Tensor::ones({2, 3});
  const auto is_named = [&](std::string_view name, const std::function<void()>& call) {
    EXPECT_THAT(error_of(call), StartsWith("[" + std::string(name) + "] ")) << name;
  };
  is_named("softmax", [&] { x.softmax(9); });
  is_named("log_softmax", [&] { x.log_softmax(9); });
  is_named("softmin", [&] { x.softmin(9); });
  is_named("logsumexp", [&] { x.logsumexp(9); });
  is_named("normalize", [&] { x.normalize(2, 9); });
  is_named("all", [&] { x.all(9); });
  is_named("argmin", [&] { x.argmin(9); });
  is_named("argmin", [&] { Tensor::ones({2, 0}).argmin(1); });
  is_named("layernorm", [&] { x.layernorm(9); });
  is_named("rmsnorm", [&] { rmsnorm(x, {}, 1e-5, 9); });
  is_named("stack", [&] { stack({x, x}, 9); });
  is_named("logsigmoid", [&] { (x > 0).logsigmoid(); });
  is_named("full_like", [&] { x.full_like(x); });
  for (const Shape& shape : {Shape{-1, 2}, Shape{int64_t{1} << 62, 4}}) {
    is_named("ones", [&] { Tensor::ones(shape); });
    is_named("empty", [&] { Tensor::empty(shape); });
    is_named("randn", [&] { Tensor::randn(shape); });
    is_named("uniform", [&] { Tensor::uniform(shape, 0, 1); });
    is_named("normal", [&] { Tensor::normal(shape, 0, 1); });
    is_named("glorot_uniform", [&] { Tensor::glorot_uniform(shape); });
    is_named("kaiming_normal", [&] { Tensor::kaiming_normal(shape); });
  }
  is_named("rand_like", [&] { (x > 0).rand_like(); });
  is_named("randn_like", [&] { (x > 0).randn_like(); });
}

TEST(TwoDevices, SoItIsForShapesAndDtypes) {
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_THAT(error_of([&] { linear(x, Tensor::ones({3, 4}), Tensor::ones({5})); }),
              StartsWith("[linear] shapes (2, 4) and (5,) do not broadcast"));
  EXPECT_THAT(error_of([&] { linear(x, Tensor::ones({4, 5})); }),
              StartsWith("[linear] inner sizes differ: (2, 3) x (4, 5)"));
  EXPECT_THAT(error_of([&] { x.masked_fill(x, 0); }),
              StartsWith("[masked_fill] the condition is f32, not bool"));
  EXPECT_THAT(error_of([&] { x.lerp(Tensor::ones({4}), 0.5); }), StartsWith("[lerp] shapes"));
  EXPECT_THAT(error_of([&] { x* Tensor::ones({4}); }), StartsWith("[mul] shapes"))
      << "a name does not outlive its function, also where that throws";
}

}  // namespace
}  // namespace plugrad
