// Programs on a real device: what their traces say of the step, also of networks that this machine
// could not hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/settings.h"
#include "plugrad/plugrad.h"
#include "scale/program.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::tools::scale {
namespace {

// A process has one trace, so each program runs in a process.
Program traced(const std::function<void()>& program, const std::string& layers = "") {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    change_settings([&](Settings& s) {
      s.trace_path = path;
      s.layers = layers;
      s.tune = false;
    });
    program();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return program_of(read_plans(path), {});
}

struct Net {
  explicit Net(int64_t width) : up(8, width), down(width, 4) {}
  nn::Linear up, down;
  PLUGRAD_FIELDS(up, down)
  Tensor operator()(const Tensor& x) const { return down(relu(up(x))); }
};

void train(int64_t width, bool is_jitted) {
  Net net(width);
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  const auto run = [&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  };
  const Tensor x = Tensor::rand({32, 8}).realize(), y = Tensor::randint({32}, 0, 4).realize();
  auto step = jit(run);
  for (int i = 0; i < 4; ++i) is_jitted ? step(x, y).item<float>() : run(x, y).item<float>();
}

std::map<Role, size_t> roles_of(const Program& program) {
  std::map<Role, size_t> counts;
  for (const Leaf& leaf : program.leaves) ++counts[leaf.role];
  return counts;
}

TEST(RecordedStep, ParametersStateAndBatchAreFound) {
  for (const bool is_jitted : {false, true}) {
    const Program program = traced([&] { train(16, is_jitted); });
    const auto roles = roles_of(program);
    EXPECT_EQ(roles.at(Role::Parameter), 4u) << is_jitted;
    EXPECT_EQ(roles.at(Role::State), 8u) << is_jitted;
    EXPECT_EQ(roles.at(Role::Batch), 2u) << is_jitted;
    EXPECT_EQ(program.batch, 32) << is_jitted;
    EXPECT_EQ(program.groups.size(), 4u) << is_jitted;
    EXPECT_EQ(program.to_state.size(), 8u) << is_jitted;  // each parameter and its gradient
    ASSERT_TRUE(program.measured) << is_jitted;
    EXPECT_GT(program.measured->kernel_seconds.size(), 3u) << is_jitted;
  }
}

TEST(RecordedStep, TheLayerSkipTracesNetworksThatDoNotFit) {
  constexpr int64_t kWidth = int64_t{1} << 28;  // 8 GiB for each weight
  const Program program = traced([&] { train(kWidth, false); }, "skip");
  uint64_t bytes = 0;
  for (const Leaf& leaf : program.leaves) bytes += leaf.bytes();
  EXPECT_GT(bytes, uint64_t{32} << 30);
  EXPECT_EQ(roles_of(program).at(Role::Parameter), 4u);
  EXPECT_NE(program.measured->device, "");
}

}  // namespace
}  // namespace plugrad::tools::scale
