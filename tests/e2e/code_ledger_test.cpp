// Compiling costs what the code is long: the instructions of kernel IR of all kernels of a first
// step, with the schedules of first launches and with full ones, may differ from code_ledger.txt by
// 5%. Planned by the reference device and generated for one processor, so the counts are the same
// everywhere. A change that is meant goes into the file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "base/settings.h"
#include "bench/networks/resnet18.h"
#include "bench/networks/transformer_step.h"
#include "bench/networks/unet_step.h"
#include "codegen/codegen.h"
#include "cost/machine.h"
#include "engine/session.h"
#include "ir/kernel_ast.h"
#include "plugrad/device.h"
#include "plugrad/nn.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"
#include "tools/plugrad/mnist_networks.h"

namespace plugrad {
namespace {

using Tensors = std::vector<Tensor>;

// A processor of x86-64-v3 with one thread.
pgr_device_caps caps_of_v3() {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (uint32_t& dtypes : caps.op_dtypes) dtypes = 0xffffffff;
  caps.storage_dtypes = 0xffffffff;
  caps.contract_supported = 1;
  for (uint32_t d = 1; d < PGR_DTYPE_COUNT; ++d)
    caps.vector_lanes[d] = 32 / size_of(static_cast<DType>(d));
  caps.vector_registers = 16;
  caps.subgroup_size = caps.threads = caps.max_local_total = 1;
  for (uint32_t& size : caps.max_local_size) size = 1;
  for (uint64_t& count : caps.max_groups) count = 1 << 30;
  caps.private_bytes = caps.cache_bytes[1] = 512 << 10;
  caps.cache_bytes[0] = 32 << 10;
  caps.cache_bytes[2] = 16 << 20;
  caps.cache_line_bytes = caps.buffer_align_bytes = 64;
  caps.max_params = 1024;
  return caps;
}

struct Lengths {
  double frugal = 0, full = 0;  // instructions
};

double instructions_of(const KernelAst& ast, bool is_frugal) {
  static const pgr_device_caps caps = caps_of_v3();
  static const auto machine =
      std::make_shared<cost::Machine>(cost::table_machine("x86_64-v3", caps));
  const codegen::KernelCode code =
      codegen::generate(ast.graph, ast.sink, caps, {.frugal = is_frugal, .machine = machine});
  pgr_ir_header header;
  std::memcpy(&header, code.ir.data(), sizeof header);
  return header.inst_count;
}

// Of the distinct kernels that compute the results.
Lengths lengths_of(const Tensors& results) {
  std::vector<engine::TensorState*> states;
  for (const Tensor& result : results) states.push_back(tensor::state_of(result).get());
  std::set<std::pair<uint64_t, uint64_t>> seen;
  Lengths sum;
  for (const auto& kernel : engine::Session::current().planned_kernels_of(states)) {
    const KernelAst& ast = *kernel.planned;
    if (!seen.emplace(ast.hash[0], ast.hash[1]).second) continue;
    sum.frugal += instructions_of(ast, true);
    sum.full += instructions_of(ast, false);
  }
  return sum;
}

Tensor data(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) / 97;
  return Tensor::from(values, shape);
}

Tensor labels(int64_t count) {
  return Tensor::from(std::vector<int32_t>(static_cast<size_t>(count), 3), {count});
}

// All that a first training step computes, the initial weights among it.
template <class Net, class Loss>
Tensors step_of(Net& net, Loss loss_of) {
  const Tensor loss = loss_of(net);
  loss.backward();
  Tensors results = {loss};
  for (const Tensor& weight : nn::parameters(net)) {
    const Tensor moment = weight.grad() * 0.1;  // as Adam's first step
    results.push_back(moment);
    results.push_back(weight - moment / ((moment * moment).sqrt() + 1e-8) * 0.001);
  }
  return results;
}

Tensors mnist() {
  tools::MnistCnn net;
  return step_of(net, [](auto& n) {
    return sparse_categorical_crossentropy(n(data({64, 1, 28, 28})), labels(64));
  });
}

struct Perceptron {
  nn::Linear a{100, 300}, b{300, 100}, c{100, 7};
  PLUGRAD_FIELDS(a, b, c)
  Tensor operator()(const Tensor& x) const { return c(relu(b(gelu(a(x))))); }
};

Tensors perceptron() {
  Perceptron net;
  return step_of(net, [](auto& n) { return mse_loss(n(data({33, 100})), data({33, 7})); });
}

Tensors transformer() {
  bench::TransformerBlock net(128, 4);
  return step_of(net, [](auto& n) { return mse_loss(n(data({8, 50, 128})), data({8, 50, 128})); });
}

Tensors unet() {
  bench::UNet net;
  return step_of(net,
                 [](auto& n) { return mse_loss(n(data({4, 1, 48, 48})), data({4, 1, 48, 48})); });
}

Tensors resnet() {
  bench::ResNet18 net;
  const nn::TrainingScope evaluation(false);
  return {net(data({1, 3, 224, 224}))};
}

struct Recurrent {
  nn::Embedding table{1000, 48};
  nn::LSTM lstm{48, 64};
  nn::Linear out{64, 1000};
  PLUGRAD_FIELDS(table, lstm, out)
};

Tensors recurrent() {
  Recurrent net;
  return step_of(net, [](auto& n) {
    const Tensor h = n.lstm(n.table(labels(72).reshape({6, 12}))).output;
    return sparse_categorical_crossentropy(n.out(h).reshape({72, 1000}), labels(72));
  });
}

struct Separable {
  nn::Conv2d depthwise{24, 24, 3, {.padding = 1, .groups = 24}}, pointwise{24, 40, 1};
  nn::BatchNorm norm{24};
  PLUGRAD_FIELDS(depthwise, pointwise, norm)
};

Tensors separable() {
  Separable net;
  return step_of(net, [](auto& n) {
    return n.pointwise(silu(n.norm(n.depthwise(data({2, 24, 35, 35}))))).square().mean();
  });
}

Tensors random_numbers() {
  return {Tensor::rand({1000}), Tensor::randn({33, 31}), Tensor::randint({77}, 0, 10),
          Tensor::rand({4096}) * 2 - 1, Tensor::randn({784, 128}) * 0.05};
}

Tensors rows() {
  const Tensor x = data({100, 777});
  return {softmax(x), x.sum(1), x.argmax(1), x.cumsum(1), x.max(0), x.mean(), x.transpose().exp()};
}

Tensors pieces() {
  const Tensor x = data({64, 65});
  return {cat({x.exp(), x.sin(), x}, 1), x.pad({{1, 2}, {3, 4}}).tanh(), x.roll(3, 0) * x,
          x.tril() + x.flip({1}), x.sort(1).first};
}

struct Row {
  const char* name;
  Tensors (*make)();
};

class CodeLedger : public testing::TestWithParam<Row> {};

std::string line_of(const char* name, const Lengths& lengths) {
  return fmt::format("{} {:.0f} {:.0f}", name, lengths.frugal, lengths.full);
}

std::map<std::string, Lengths> written() {
  std::map<std::string, Lengths> rows;
  std::ifstream file(PLUGRAD_CODE_LEDGER);
  std::string name;
  Lengths lengths;
  while (file >> name >> lengths.frugal >> lengths.full) rows[name] = lengths;
  return rows;
}

TEST_P(CodeLedger, IsRight) {
  const DeviceScope device("REFERENCE");
  const Lengths now = lengths_of(GetParam().make()), before = written()[GetParam().name];
  constexpr double kMost = 0.05;
  EXPECT_NEAR(now.frugal, before.frugal, kMost * before.frugal);
  EXPECT_NEAR(now.full, before.full, kMost * before.full);
  if (HasFailure())
    ADD_FAILURE() << "the line of code_ledger.txt is now: " << line_of(GetParam().name, now);
}

constexpr Row kRows[] = {{"mnist", mnist},
                         {"perceptron", perceptron},
                         {"transformer", transformer},
                         {"unet", unet},
                         {"resnet18", resnet},
                         {"recurrent", recurrent},
                         {"separable", separable},
                         {"random_numbers", random_numbers},
                         {"rows", rows},
                         {"pieces", pieces}};

INSTANTIATE_TEST_SUITE_P(FirstSteps, CodeLedger, testing::ValuesIn(kRows),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace plugrad
