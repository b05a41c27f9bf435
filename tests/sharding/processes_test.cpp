// Sharded tensors of a program of several processes, under an MPI's launcher: every rank computes
// the same as one process.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/check.h"
#include "base/settings.h"
#include "engine/session.h"
#include "nn/checkpoint/in_all_ranks.h"
#include "plugrad/distributed.h"
#include "plugrad/nn/pipeline.h"
#include "sharding/meshes.h"
#include "sharding/trained.h"

namespace plugrad {
namespace {

Mesh all_ranks() {
  return Mesh({{"data", distributed::size()}}, {"CPU"});
}
/// Two positions a process, on two kinds of devices.
Mesh two_a_rank() {
  return Mesh({{"data", distributed::size()}, {"model", 2}}, {"CPU", "REFERENCE"});
}

TEST(Processes, HaveTheirPartsAlone) {
  const Tensor x = counting({8, 2}, 0.0, 1.0).shard(all_ranks(), {"data"});
  const std::vector<Tensor> parts = x.shards();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].size(0), 8 / distributed::size());
  EXPECT_EQ(parts[0].to_vector<float>()[0],
            static_cast<float>(16 / distributed::size() * distributed::rank()));
  EXPECT_EQ(x.to_vector<float>(), counting({8, 2}, 0.0, 1.0).to_vector<float>());
}

TEST(Processes, EverySpecLeadsToEveryOther) {
  const std::vector<ShardSpec> specs = {{},
                                        {"data"},
                                        {"model"},
                                        {"", "data"},
                                        {"data", "model"},
                                        {"data+model"},
                                        {"", "data+model"},
                                        ShardSpec({"data"}).with_partial_sum("model"),
                                        ShardSpec().with_partial_sum("data+model")};
  const Mesh mesh = two_a_rank();
  for (const Shape& shape : {Shape{8, 4}, Shape{5, 3}, Shape{0, 3}})
    for (const ShardSpec& from : specs)
      for (const ShardSpec& to : specs)
        EXPECT_EQ(counting(shape).shard(mesh, from).shard(mesh, to).to_vector<float>(),
                  counting(shape).to_vector<float>())
            << from.to_string() << " to " << to.to_string() << " of " << to_string(shape);
}

TEST(Processes, SeveralCollectivesOfOnePlanRunInOneOrder) {
  const Mesh mesh = all_ranks();
  const Tensor x = counting({9, 5}).shard(mesh, {"data"});
  const Tensor y = counting({5, 9}, 1.0, 0.25).shard(mesh, {"", "data"});
  // Ranks see different parts and constants; sums are commutative and have no order of their own.
  const Tensor z =
      (x.sum(0) + y.sum(1)) * (x.square().sum(0) + y.max(1)) + x.matmul(y).sum(0).sum();
  expect_as_evaluated(z);
}

// As when ranks have other tensors beside those on meshes.
void collect_in_rank_1() {
  if (distributed::rank() == 1) engine::Session::current().collect();
}

TEST(Processes, ComputeAgainWhatTheOthersDo) {
  const Tensor x = counting({8, 3}, 0.0, 1.0).shard(all_ranks(), {"data"}).realize();
  const std::vector<float> values = counting({8, 3}, 0.0, 1.0).to_vector<float>();
  std::vector<Tensor> kept;  // so that garbage is not collected after each value
  for (int i = 0; i < 1000; ++i) kept.push_back(x + i);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(x.to_vector<float>(), values);
    EXPECT_EQ((x * 2).sum().item<float>(), 2 * 276);
    collect_in_rank_1();
    EXPECT_EQ((x * 2).sum().item<float>(), 2 * 276);
    EXPECT_EQ(x.to_vector<float>(), values);
    collect_in_rank_1();
  }
}

TEST(Processes, AnOlderNodeThatIsRecordedAgainIsNotMovedFirst) {
  const Tensor x = counting({8, 3}, 0.0, 1.0).shard(all_ranks(), {"data"}).realize();
  (x * 3).sum();  // never computed
  collect_in_rank_1();
  const Tensor all[] = {(x * 2).sum(), (x * 3).sum()};
  Tensor::realize(all);
  EXPECT_EQ(all[0].item<float>(), 2 * 276);
  EXPECT_EQ(all[1].item<float>(), 3 * 276);
}

enum class Cut { NoMesh, Batch, BatchAndState, BatchAndParameters };

/// The losses of jitted steps, and the last parameters.
std::vector<float> trained(Cut cut) {
  const Mesh mesh = all_ranks();
  const bool is_sharded = cut != Cut::NoMesh;
  Tensor w = counting({6, 3}, 0.1, 0.02), b = counting({3}, 0.0, 0.1);
  if (is_sharded) {
    const ShardSpec spec = cut == Cut::BatchAndParameters ? ShardSpec({"data"}) : ShardSpec();
    w = w.shard(mesh, spec).realize();
    b = b.shard(mesh, spec).realize();
  }
  w.requires_grad_();
  b.requires_grad_();
  optim::Adam adam({w, b}, {.lr = 0.05});
  if (cut == Cut::BatchAndState) adam.shard_state("data");
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    const Tensor loss = (x.matmul(w) + b - y).square().mean();
    loss.backward();
    adam.step();
    return loss;
  });
  std::vector<float> found;
  for (int i = 0; i < 6; ++i) {
    Tensor x = counting({8, 6}, i * 0.1, 0.03), y = counting({8, 3}, 0.0, 0.1);
    if (is_sharded) {
      x = x.shard(mesh, {"data"});
      y = y.shard(mesh, {"data"});
    }
    found.push_back(step(x, y).item<float>());
  }
  for (const Tensor& parameter : {w, b})
    for (const float value : parameter.to_vector<float>()) found.push_back(value);
  return found;
}

TEST(Processes, TrainingIsThatOfOneProcess) {
  const std::vector<float> one = trained(Cut::NoMesh);
  for (const Cut cut : {Cut::Batch, Cut::BatchAndState, Cut::BatchAndParameters}) {
    const std::vector<float> many = trained(cut);
    ASSERT_EQ(many.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(many[i], one[i], 1e-5F * (1 + std::abs(one[i])))
          << i << " " << static_cast<int>(cut);
  }
}

TEST(Processes, VariableSizesAreThoseOfOneProcess) {
  const Mesh mesh = all_ranks();
  const Variable n("n", 1, 8);
  const Tensor w = counting({4, 3}).shard(mesh).realize();
  const auto total = jit([&](const Tensor& x) { return x.matmul(w).sum(); });
  for (const int64_t rows : {3, 5, 8, 2}) {
    const Tensor x = n.fit(Tensor::full({rows, 4}, 1.0F).contiguous(), 0);
    EXPECT_EQ(total(x.shard(mesh)).item<float>(),
              static_cast<float>(rows) * counting({4, 3}).sum().item<float>());
  }
}

TEST(Processes, HaveEqualModules) {
  const auto moved = [&](uint64_t seed) {
    Tensor::manual_seed(seed);
    nn::Linear net(3, 2);
    nn::data_parallel(net, all_ranks());
  };
  moved(5);
  EXPECT_THAT(error_of([&] { moved(5 + static_cast<uint64_t>(distributed::rank())); }),
              testing::HasSubstr("rank 1 has other values of weight than rank 0"));
  moved(6);
}

// Those of another rank may come in another order.
TEST(Processes, CollectivesStartInTheThreadOfInit) {
  const Tensor x = counting({8, 2}).shard(all_ranks(), {"data"}).realize();
  std::string error;
  std::thread([&] { error = error_of([&] { (x * 2).sum().item<float>(); }); }).join();
  EXPECT_THAT(error, testing::HasSubstr("in another thread than that which called"));
  EXPECT_EQ((x * 2).sum().item<float>(), (counting({8, 2}) * 2).sum().item<float>());
}

Mesh on_rank(int64_t rank) {
  return Mesh({{"data", 1}}, {}, {rank});
}

TEST(Processes, DeterministicStepsHaveTheBitsOfOneProcess) {
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  const std::vector<float> one = trained_on(Mesh({{"data", 1}}, {"CPU"}, {0}));
  EXPECT_EQ(trained_on(all_ranks()), one);
}

TEST(Processes, ValuesMoveBetweenMeshesOfOtherProcesses) {
  const Mesh first = on_rank(0), last = on_rank(distributed::size() - 1);
  const Tensor x = counting({4, 3}).shard(first);
  EXPECT_EQ(x.shards().size(), distributed::rank() == 0 ? 1u : 0u);
  const Tensor y = (x * 2.0).to(last.device());
  EXPECT_EQ(y.mesh(), last);
  const Tensor z = (y.square() + counting({3}).shard(last)).to(first.device()).sum(1);
  expect_as_evaluated(z);
  expect_as_evaluated(y.max());
  EXPECT_EQ(y.to_vector<float>(), (counting({4, 3}) * 2.0).to_vector<float>());
  EXPECT_EQ(x.shard(all_ranks(), {"data"}).to_vector<float>(), counting({4, 3}).to_vector<float>());
  EXPECT_EQ(counting({4, 3}).shard(all_ranks(), {"data"}).shard(last).to_vector<float>(),
            counting({4, 3}).to_vector<float>());
  EXPECT_EQ(counting({0, 3}).shard(first).to(last.device()).to_vector<float>(),
            std::vector<float>());
}

// Rank 1 has no part in the movement between the sums, which it could otherwise bucket.
TEST(Processes, BucketsAreThoseOfAllMembers) {
  if (distributed::size() < 4) GTEST_SKIP() << "three ranks take part, and one does not";
  const Mesh pair({{"data", 2}}, {}, {0, 1}), three({{"data", 3}}, {}, {0, 1, 2});
  const Tensor a = counting({8, 2}).shard(all_ranks(), {"data"}).realize();
  const Tensor b = counting({4, 2}).to(pair.device()).shard(pair, {"data"}).realize();
  const Tensor first = a.sum(0), moved = b.sum(0).to(three.device()) * 2, second = (a * 3).sum(0);
  Tensor::realize(std::vector{first, moved, second});
  const float sum = counting({8, 2}).sum().item<float>();
  EXPECT_EQ(first.sum().item<float>(), sum);
  EXPECT_EQ(second.sum().item<float>(), 3 * sum);
}

TEST(Processes, PartsMoveToTheSamePositionOfAnotherMesh) {
  const int64_t half = distributed::size() / 2;
  std::vector<int64_t> lower, upper;
  for (int64_t rank = 0; rank < distributed::size(); ++rank)
    (rank < half ? lower : upper).push_back(rank);
  const Mesh a({{"data", half}}, {}, lower), b({{"data", half}}, {}, upper);
  const Tensor x = counting({5, 3}).shard(a, {"data"});
  const Tensor y = x.to(b.device());
  EXPECT_EQ(y.shard_spec(), (ShardSpec{"data", ""}));
  expect_as_evaluated(y.matmul(counting({3, 2}).shard(b)).sum(0));
}

TEST(Processes, TrainAPipelineOfStages) {
  const auto train = [](bool is_pipeline) {
    Tensor::manual_seed(5);
    nn::Sequential layers(nn::Linear(6, 8), relu, nn::Linear(8, 8), relu, nn::Linear(8, 3));
    const std::string last = is_pipeline ? on_rank(distributed::size() - 1).device() : "CPU";
    nn::Pipeline net(std::move(layers), {{0, is_pipeline ? on_rank(0).device() : "CPU"}, {3, last}},
                     4);
    optim::Adam adam(nn::parameters(net), {.lr = 0.02});
    const auto step = jit([&](const Tensor& x, const Tensor& y) {
      adam.zero_grad();
      const Tensor loss = net.loss(x, y, [](const Tensor& made, const Tensor& wanted) {
        return (made - wanted).square().mean();
      });
      loss.backward();
      optim::clip_grad_norm(adam.parameters(), 1.0);
      adam.step();
      return loss;
    });
    std::vector<float> found;
    for (int i = 0; i < 5; ++i)
      found.push_back(
          step(counting({8, 6}, i * 0.1, 0.03), counting({8, 3}, 0.0, 0.1)).item<float>());
    for (const Tensor& parameter : nn::parameters(net))
      for (const float value : parameter.to_vector<float>()) found.push_back(value);
    return found;
  };
  const std::vector<float> one = train(false), many = train(true);
  ASSERT_EQ(many.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(many[i], one[i], 1e-5F * std::max(1.0F, std::abs(one[i]))) << i;
  EXPECT_LT(one[4], one[0]);
}

TEST(Processes, RanksOfAMeshExistAndAscend) {
  EXPECT_THAT(error_of([] { Mesh({{"data", 1}}, {}, {distributed::size()}); }),
              testing::HasSubstr("below"));
  EXPECT_THAT(error_of([] { Mesh({{"data", 2}}, {}, {1, 0}); }), testing::HasSubstr("ascend"));
  const Mesh last = on_rank(distributed::size() - 1);
  if (distributed::rank() == 0) {
    EXPECT_THAT(error_of([&] { from_shards(last, {}, {2}, {}); }),
                testing::HasSubstr("no position"));
  }
}

/// A path that all ranks agree on, removed at the end by rank 0.
struct SharedFolder {
  std::string path;
  explicit SharedFolder(const std::string& name)
      : path("/tmp/plugrad-processes-test-" + std::to_string(::getppid()) + name) {}
  ~SharedFolder() {
    distributed::barrier();
    std::error_code ignored;
    if (distributed::rank() == 0) std::filesystem::remove_all(path, ignored);
  }
};

TEST(Processes, SaveOneFileTogether) {
  const SharedFolder file("-file");
  const Tensor x = counting({5, 3});
  nn::save_state({{"x", x.shard(all_ranks(), {"data"})}}, file.path);
  EXPECT_EQ(nn::read_state(file.path)[0].second.to_vector<float>(), x.to_vector<float>());
  const std::string message = error_of(
      [&] { nn::save_state({{"x", x.shard(all_ranks(), {"data"})}}, file.path + "/no/folder"); });
  EXPECT_THAT(message, testing::HasSubstr("rank 0: cannot write"));
}

TEST(Processes, ShareTheFilesOfACheckpoint) {
  const SharedFolder folder("-balance");
  nn::StateDict state, target;
  for (int i = 0; i < 12; ++i) {
    const Tensor x = counting({100, 10}, i);
    state.emplace_back("x" + std::to_string(i), x.shard(two_a_rank(), {"", "model"}));
    target.emplace_back("x" + std::to_string(i), (x * 0.0).shard(all_ranks(), {"data"}).realize());
  }
  nn::save_sharded(state, folder.path);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    if (entry.path().extension() == ".safetensors") {
      EXPECT_NEAR(static_cast<double>(entry.file_size()), 12 * 4000.0 / distributed::size(), 4100);
    }
  }
  distributed::barrier();  // before another save replaces them
  nn::load_sharded(target, folder.path);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(target[i].second.to_vector<float>(), counting({100, 10}, i).to_vector<float>());
}

TEST(Processes, WaitForASlowRankLongerThanTheDeadline) {
  const SettingScope scope([](Settings& s) { s.collective_seconds = 0.4; });
  const auto results = nn::results_of_slow_work("test", [] {
    if (distributed::rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    return std::vector(1, static_cast<std::byte>(distributed::rank()));
  });
  ASSERT_EQ(results.size(), static_cast<size_t>(distributed::size()));
  EXPECT_EQ(results[1], std::vector(1, std::byte{1}));
  EXPECT_THAT(error_of([] {
                nn::results_of_slow_work("test", []() -> std::vector<std::byte> {
                  require(distributed::rank() != 1, "[write] no space");
                  return {};
                });
              }),
              "[test] rank 1: no space");
}

TEST(Processes, SaveStagesOfOtherProcesses) {
  const SharedFolder folder("-stages");
  const Tensor x = counting({4, 3}), y = counting({5}, 1.0);
  nn::save_sharded({{"x", x.shard(on_rank(0))}, {"y", y.shard(on_rank(1))}}, folder.path);
  const Tensor u = (x * 0.0).shard(on_rank(1)).realize(), v = (y * 0.0).realize();
  nn::load_sharded({{"x", u}, {"y", v}}, folder.path);
  EXPECT_EQ(u.to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(v.to_vector<float>(), y.to_vector<float>());
}

TEST(Processes, SaveTheSameState) {
  const SharedFolder folder("-same");
  const Tensor x = counting({4}).shard(all_ranks(), {"data"});
  const double own = distributed::rank();
  nn::save_sharded({{"x", x}, {"y", counting({4})}}, folder.path);
  EXPECT_THAT(
      error_of([&] { nn::save_sharded({{"x", x}, {"y", counting({4}, own)}}, folder.path); }),
      testing::HasSubstr("y is on no mesh, and ranks 0 and 1 have different values"));
  const std::string name = own == 1 ? "z" : "y";
  EXPECT_THAT(error_of([&] { nn::save_sharded({{"x", x}, {name, counting({4})}}, folder.path); }),
              testing::HasSubstr("rank 1 saves 2 tensors, and rank 0 2, which differ in names"));
  const Tensor y = counting({4}) * 0.0;
  nn::load_sharded({{"x", x}, {"y", y}}, folder.path);
  EXPECT_EQ(y.to_vector<float>(), counting({4}).to_vector<float>());
}

TEST(Processes, SaveToOneFolder) {
  const SharedFolder folder("-one"), other("-other");  // as on two machines
  const Tensor x = counting({4}).shard(all_ranks(), {"data"});
  nn::save_sharded({{"x", x}}, folder.path);
  if (distributed::rank() == 0) std::filesystem::create_directory(other.path);
  distributed::barrier();
  const std::string& own = distributed::rank() == 1 ? other.path : folder.path;
  EXPECT_THAT(error_of([&] { nn::save_sharded({{"x", x + 1}}, own); }),
              testing::AllOf(testing::HasSubstr("rank 0 does not see the file"),
                             testing::HasSubstr("which rank 1 has written")));
  const Tensor y = counting({4}) * 0.0;
  nn::load_sharded({{"x", y}}, folder.path);
  EXPECT_EQ(y.to_vector<float>(), counting({4}).to_vector<float>());
}

TEST(Processes, FailToLoadTogether) {
  const SharedFolder folder("-load");
  const Tensor x = counting({4}).shard(all_ranks(), {"data"}).realize();
  nn::save_sharded({{"x", x}}, folder.path);
  const std::string own = distributed::rank() == 1 ? folder.path + "/none" : folder.path;
  EXPECT_THAT(error_of([&] { nn::load_sharded({{"x", x}}, own); }),
              testing::HasSubstr("rank 1: cannot read"));
  distributed::barrier();
  if (distributed::rank() == 1)
    nn::load_sharded({{"y", counting({4})}}, folder.path, nn::Loading::NotStrict);
}

TEST(Processes, AMeshDividesAmongThem) {
  EXPECT_THAT(
      error_of([] { Mesh({{"data", distributed::size() * 64}}); }),
      testing::HasSubstr(fmt::format("the axes have {} positions, 64 in each of {} processes",
                                     distributed::size() * 64, distributed::size())));
  EXPECT_THAT(error_of([] { Mesh({{"data", distributed::size() + 1}}, {"CPU"}); }),
              testing::HasSubstr("do not divide among"));
}

}  // namespace
}  // namespace plugrad

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  plugrad::distributed::init();
  return RUN_ALL_TESTS();
}
