// The most kernels that each graph of the fusion table (docs/tensor-guide.md) may run, counted
// through the public API.
#include <gtest/gtest.h>

#include <functional>

#include "plugrad/nn.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

Tensor stored_values(const Shape& shape) {
  return Tensor::rand(shape).realize();
}

struct Row {
  const char* name;
  size_t most;
  std::function<Tensor()> graph;
};
void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class Fusion : public testing::TestWithParam<Row> {};

TEST_P(Fusion, runs_at_most_so_many_kernels) {
  EXPECT_LE(GetParam().graph().schedule().size(), GetParam().most);
}

Tensor square() {
  return stored_values({4, 4});
}

const Row kElementwise[] = {
    {"a + b + c", 1, [] { return square() + square() + square(); }},
    {"relu(a * b + c)", 1, [] { return relu(square() * square() + square()); }},
    {"relu(a * 2 + 1)", 1, [] { return relu(square() * 2 + 1); }},
    {"sum(relu(a + b))", 1,
     [] { return (stored_values({1024}) + stored_values({1024})).relu().sum(); }},
    {"b = a + 1; b * 2 + b * 3", 1,
     [] {
       const Tensor b = square() + 1;
       return b * 2 + b * 3;
     }},
    {"rand", 1, [] { return Tensor::rand({1024}); }},
    {"dropout", 1, [] { return stored_values({32, 64}).dropout(0.5); }},
    {"arange + 1", 1, [] { return Tensor::arange(10) + 1; }},
    {"eye * a", 1, [] { return Tensor::eye(4) * square(); }},
};
INSTANTIATE_TEST_SUITE_P(elementwise, Fusion, testing::ValuesIn(kElementwise));

const Row kMovement[] = {
    {"reshape", 0, [] { return square().reshape({16}); }},
    {"permute", 0, [] { return square().permute({1, 0}); }},
    {"expand", 0, [] { return stored_values({4, 1}).expand({4, 4}); }},
    {"shrink", 0, [] { return square().shrink({{1, 3}, {0, 4}}); }},
    {"flip", 0, [] { return square().flip({0}); }},
    {"constant", 0, [] { return Tensor::full({4, 4}, 3.0); }},
    {"pad + 1", 1, [] { return square().pad({{1, 1}, {1, 1}}) + 1; }},
    {"cat", 1, [] { return cat({square(), square()}, 0); }},
    {"stack", 1, [] { return stack({square(), square()}, 0); }},
    {"transpose, contiguous", 1, [] { return square().transpose().contiguous(); }},
};
INSTANTIATE_TEST_SUITE_P(movement, Fusion, testing::ValuesIn(kMovement));

const Row kReductions[] = {
    {"x.sum(1)", 1, [] { return stored_values({256, 256}).sum(1); }},
    {"x.sum(0) + y.sum(0)", 1,
     [] { return stored_values({256, 256}).sum(0) + stored_values({256, 256}).sum(0); }},
    {"x / x.sum(0)", 2,
     [] {
       const Tensor x = stored_values({256, 256});
       return x / x.sum(0);
     }},
    {"x.var(1)", 1, [] { return stored_values({256, 256}).var(1); }},
    {"softmax", 1, [] { return stored_values({32, 64}).softmax(1); }},
    {"log_softmax", 1, [] { return stored_values({32, 64}).log_softmax(1); }},
    {"layernorm", 1, [] { return stored_values({32, 64}).layernorm(1); }},
    {"argmax", 1, [] { return stored_values({32, 64}).argmax(1); }},
    {"one_hot(i).sum(0)", 1, [] { return Tensor::from({3, 1, 9}).realize().one_hot(10).sum(0); }},
    {"embedding", 1,
     [] { return embedding(stored_values({10, 4}), Tensor::from({3, 1, 9}).realize()); }},
    {"sparse_categorical_crossentropy", 3,
     [] {
       const Tensor labels = (Tensor::rand({32}) * 10).cast(DType::I32).realize();
       return sparse_categorical_crossentropy(stored_values({32, 10}), labels);
     }},
};
INSTANTIATE_TEST_SUITE_P(reductions, Fusion, testing::ValuesIn(kReductions));

Tensor image() {
  return stored_values({2, 3, 8, 8});
}
Tensor convolved() {
  return conv2d(image(), stored_values({4, 3, 3, 3}), stored_values({4}));
}
Tensor normalised(bool training) {
  const nn::TrainingScope scope(training);
  nn::BatchNorm norm(4);
  return relu(norm(convolved()));
}

const Row kNetworks[] = {
    {"relu(matmul + bias)", 1,
     [] {
       return relu(matmul(stored_values({64, 32}), stored_values({32, 48})) + stored_values({48}));
     }},
    {"matmul by expand, multiply, sum", 1,
     [] { return (stored_values({64, 32, 1}) * stored_values({1, 32, 48})).sum(1); }},
    {"relu(conv2d + bias)", 1, [] { return relu(convolved()); }},
    {"relu(padded conv2d + bias)", 1,
     [] {
       return relu(
           conv2d(image(), stored_values({4, 3, 3, 3}), stored_values({4}), {.padding = {1}}));
     }},
    {"conv2d, inference batchnorm, relu", 1, [] { return normalised(false); }},
    {"conv2d, training batchnorm, relu", 4, [] { return normalised(true); }},
    {"max_pool2d", 1, [] { return image().max_pool2d(2); }},
    {"avg_pool2d", 1, [] { return image().avg_pool2d(2); }},
    {"convolutional network, inference", 6,  // two of them pack weights
     [] {
       const Tensor x = relu(conv2d(stored_values({64, 1, 14, 14}), stored_values({16, 1, 5, 5}),
                                    stored_values({16})));
       const Tensor y =
           relu(conv2d(x, stored_values({32, 16, 3, 3}), stored_values({32}))).max_pool2d(2);
       return matmul(y.reshape({64, 32 * 4 * 4}), stored_values({32 * 4 * 4, 10}));
     }},
    {"attention", 4,
     [] {
       return scaled_dot_product_attention(stored_values({2, 4, 16, 8}),
                                           stored_values({2, 4, 16, 8}),
                                           stored_values({2, 4, 16, 8}));
     }},
    {"causal attention", 4,
     [] {
       return scaled_dot_product_attention(stored_values({2, 4, 16, 8}),
                                           stored_values({2, 4, 16, 8}),
                                           stored_values({2, 4, 16, 8}), Tensor(), true);
     }},
};
INSTANTIATE_TEST_SUITE_P(networks, Fusion, testing::ValuesIn(kNetworks));

TEST(Fusion, what_was_computed_once_is_not_computed_again) {
  const Tensor t = square();
  (t * 4).realize();
  const Tensor again = t * 4;
  EXPECT_EQ(again.schedule().size(), 0u);
}

}  // namespace
}  // namespace plugrad
