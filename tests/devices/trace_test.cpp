// Traces of programs on real devices agree with what the engine counts and the drivers measure.
#include "base/trace/trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/log.h"
#include "base/settings.h"
#include "codegen/codegen.h"
#include "devices/traced_program.h"
#include "engine/refine/candidates.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/jit.h"
#include "plugrad/nn.h"
#include "plugrad/onnx.h"
#include "plugrad/source_scope.h"
#include "plugrad/tensor.h"
#include "runtime/device/device_state.h"
#include "runtime/registry.h"
#include "tuning/schedule_database.h"
#include "unit/base/temporary_directory.h"
#include "unit/base/trace_lines.h"
#include "unit/onnx/model_bytes.h"

using namespace plugrad;
using nlohmann::json;

namespace {

// Events of a kind as rows; times absolute.
std::vector<json> events(const TraceLines& lines, const std::string& kind) {
  std::vector<json> rows;
  const auto blocks = lines.find("events");
  if (blocks == lines.end()) return rows;
  for (const json& block : blocks->second) {
    if (block["kind"] != kind) continue;
    int64_t start = 0;
    for (size_t i = 0; i < block["count"]; ++i) {
      json row;
      for (const auto& [name, column] : block["columns"].items()) row[name] = column[i];
      start += row["start"].get<int64_t>();
      row["start"] = start;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// A small network's training steps on the device, the last of them replayed.
json train(const std::string& device) {
  Tensor x = Tensor::rand({32, 20}, DType::F32, device).realize();
  Tensor w = Tensor::rand({20, 10}, DType::F32, device).realize();
  w.requires_grad_();
  auto step = jit([&](const Tensor& batch) {
    const SourceScope place("net.py", 7, "forward");
    const Tensor loss = (matmul(batch, w).relu() + 1).log().mean();
    return loss;
  });
  for (int i = 0; i < 4; ++i) step(x).to_vector<float>();
  for (int i = 0; i < 3; ++i) (x * 2).sum().item<float>();  // one plan
  const engine::Statistics counted = engine::Session::current().statistics();
  return {{"launches", counted.kernels_launched}, {"plan_cache_hits", counted.plan_cache_hits}};
}

class Trace : public testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(Trace, HasEachLaunchThatTheEngineCounts) {
  const Traced traced = trace_of([] { return train(GetParam()); });
  const std::vector<json> launches = events(traced.lines, "launch");
  EXPECT_EQ(launches.size(), traced.counted["launches"].get<size_t>());
  const json& end = traced.lines.at("end")[0];
  EXPECT_EQ(end["launches"], traced.counted["launches"]);
  EXPECT_EQ(end["dropped"], 0);
  size_t hits = 0;
  for (const json& span : events(traced.lines, "span"))
    hits += span["category"] == 0 && span["value"] == 1;
  EXPECT_EQ(hits, traced.counted["plan_cache_hits"].get<size_t>());
  EXPECT_GT(hits, 0u);
  std::set<int64_t> kernels, plans, operations;
  for (const json& kernel : traced.lines.at("kernel")) {
    kernels.insert(kernel["id"].get<int64_t>());
    for (const json& operation : kernel["operations"]) operations.insert(operation.get<int64_t>());
  }
  for (const json& plan : traced.lines.at("plan")) plans.insert(plan["id"].get<int64_t>());
  for (const json& launch : launches) {
    EXPECT_TRUE(kernels.contains(launch["kernel"].get<int64_t>()));
    EXPECT_TRUE(plans.contains(launch["plan"].get<int64_t>()));
    EXPECT_GE(launch["step"], 0);
  }
  // The place and the derivative of the operations that kernels compute.
  std::set<std::string> named;
  for (const json& operation : traced.lines.at("operation"))
    if (operation["file"] == "net.py" && operations.contains(operation["id"].get<int64_t>()))
      named.insert(operation["name"]);
  EXPECT_THAT(named, testing::IsSupersetOf({"log", "mul"}));
}

TEST_P(Trace, CopiesHaveTheBytesOfTheProgram) {
  const Traced traced = trace_of([] {
    const std::vector<float> values(3000, 1.5f);
    Tensor x = Tensor::from(values, {3000}, GetParam());
    Tensor y = (x + 1).realize();
    y.to_vector<float>();
    return json{{"in", 12'000}, {"out", 12'000}};
  });
  std::map<int, int64_t> bytes;
  for (const json& copy : events(traced.lines, "copy"))
    bytes[copy["direction"].get<int>()] += copy["bytes"].get<int64_t>();
  EXPECT_EQ(bytes[static_cast<int>(trace::Direction::In)], traced.counted["in"]);
  EXPECT_EQ(bytes[static_cast<int>(trace::Direction::Out)], traced.counted["out"]);
}

TEST_P(Trace, RewritesOfStagesAreThoseCounted) {
  const Traced traced = trace_of([] { return train(GetParam()); }, true);
  uint64_t rewrites = 0;
  for (const json& stage : traced.lines.at("stage")) {
    std::set<int64_t> nodes;
    for (const json& node : stage["nodes"]) {
      for (const json& source : node[4]) EXPECT_TRUE(nodes.contains(source.get<int64_t>()));
      nodes.insert(node[0].get<int64_t>());
    }
    EXPECT_EQ(stage["roots"].empty(), stage["rewrites"].empty());
    int64_t last = -1;
    for (const json& root : stage["roots"]) {
      EXPECT_LT(last, root[0].get<int64_t>());
      last = root[0];
      EXPECT_TRUE(root[1] == -1 || nodes.contains(root[1].get<int64_t>()));
    }
    EXPECT_LT(last, static_cast<int64_t>(stage["rewrites"].size()));
    for (const json& rewrite : stage["rewrites"]) {
      rewrites += rewrite[0] != 0;
      EXPECT_TRUE(nodes.contains(rewrite[1].get<int64_t>()));
      EXPECT_TRUE(nodes.contains(rewrite[2].get<int64_t>()));
    }
    for (const json& root : stage["after"]) EXPECT_TRUE(nodes.contains(root.get<int64_t>()));
  }
  EXPECT_GT(rewrites, 100u);
  EXPECT_EQ(traced.lines.at("end")[0]["rewrites"], rewrites);
  for (const json& kernel : traced.lines.at("kernel")) EXPECT_NE(kernel["run"], 0);
}

// A sum that ends at a count from memory: some stages change its loops without a rule.
json sum_up_to_a_count(const std::string& device) {
  const Variable rows("rows", 1, 4096);
  const Tensor x = Tensor::rand({4096, 3}, DType::F32, device).realize();
  rows.limit(x, 0, rows.bind(5, device)).sum(0).realize();
  return json::object();
}

TEST_P(Trace, AStageThatChangesTheKernelHasAnotherGraphAfterIt) {
  const Traced traced = trace_of([] { return sum_up_to_a_count(GetParam()); }, true);
  std::map<int64_t, std::string> before;  // by run: the text after the stage before
  std::set<std::string> changed;
  for (const json& stage : traced.lines.at("stage")) {
    if (stage["pipeline"] != "codegen") continue;
    const std::string text = stage["text"];
    if (text.ends_with("instructions")) continue;
    const std::string last = std::exchange(before[stage["run"].get<int64_t>()], text);
    if (last.empty()) continue;
    EXPECT_EQ(stage["before"] != stage["after"], last != text) << stage["name"] << last << text;
    if (last != text) changed.insert(stage["name"]);
  }
  EXPECT_TRUE(changed.contains("dynamic bounds")) << json(changed);
}

TEST_P(Trace, AKernelThatTheProcessHasIsAHitOfItsCache) {
  const Traced traced = trace_of([] {
    const Tensor x = Tensor::rand({8}, DType::F32, GetParam()).realize();
    const Tensor like_x = Tensor::rand({8}, DType::F32, GetParam()).realize();
    const Tensor y = Tensor::rand({5, 3}, DType::F32, GetParam()).realize();
    (x * 3).realize();
    const Tensor both[] = {like_x * 3, y * 5};
    Tensor::realize(both);
    return json::object();
  });
  std::vector<json> compiles;
  for (const json& span : events(traced.lines, "span"))
    if (span["category"] == 2) compiles.push_back(span);
  const auto is_hit = [](const json& span) { return span["value"] == 2; };
  EXPECT_EQ(std::ranges::count_if(compiles, is_hit), 1);
}

TEST_P(Trace, MemoryGoesUpAndDownByItsChanges) {
  const Traced traced = trace_of([] { return train(GetParam()); });
  int64_t used = 0;
  for (const json& event : events(traced.lines, "memory")) {
    used += event["change"].get<int64_t>();
    EXPECT_EQ(event["used"], used);
  }
}

TEST_P(Trace, DefinesEachKernelAndPlanInASpanOfItsOwn) {
  const Traced traced = trace_of([] { return train(GetParam()); }, true);
  std::map<int64_t, std::string> names;
  for (const json& name : traced.lines.at("name")) names[name["id"]] = name["text"];
  std::map<std::string, size_t> spans;
  for (const json& span : events(traced.lines, "span")) ++spans[names[span["name"]]];
  EXPECT_EQ(spans["define kernel for the trace"], traced.lines.at("kernel").size());
  EXPECT_EQ(spans["define plan for the trace"], traced.lines.at("plan").size());
}

// This program contains the library, whose own frames precede those of the program.
TEST(TraceOfRandomNumbers, HasALineOfTheProgramForEachOperation) {
  const Traced traced = trace_of([] {
    nn::Linear layer(8, 4);
    layer(Tensor::rand({2, 8}, DType::F32, "CPU")).realize();
    return json::object();
  });
  ASSERT_GT(traced.lines.at("operation").size(), 20u);
  for (const json& operation : traced.lines.at("operation")) {
    EXPECT_THAT(operation["file"].get<std::string>(), testing::EndsWith("trace_test.cpp"))
        << operation;
    EXPECT_GT(operation["line"], 0) << operation;
  }
}

TEST(TraceOfSearch, HasThePredictedAndMeasuredTimesOfItsCandidates) {
  TemporaryDirectory directory;
  const Traced traced = trace_of(
      [&]() -> json {
        change_settings([&](Settings& s) {
          s.schedule_database = directory / "search.db";
          s.beam = 1;
          s.beam_seconds = 0.5;
        });
        Tensor a = Tensor::rand({96, 96}, DType::F32, "CPU").realize();
        matmul(a, a).realize();
        return json::object();
      },
      true);
  size_t measured = 0, chosen = 0;
  for (const json& kernel : traced.lines.at("kernel"))
    for (const json& candidate : kernel.value("candidates", json::array())) {
      if (candidate["measured_ns"] == 0) continue;
      ++measured;
      chosen += candidate["chosen"] == true;
      EXPECT_GT(candidate["predicted_ns"], 0);
    }
  EXPECT_GE(chosen, 1u);
  EXPECT_GT(measured, chosen);
}

namespace {

// The kernel's own schedule takes twice as long as each candidate.
std::string own_schedule;
uint64_t time_of(const engine::ReadyKernel& kernel) {
  const std::string schedule = codegen::to_string(kernel.code.schedule);
  if (own_schedule.empty()) own_schedule = schedule;
  return schedule == own_schedule ? 1'000'000 : 500'000;
}

json replay_until_refined(const std::string& database) {
  change_settings([&](Settings& s) {
    s.tune = true;
    s.schedule_database = database;
  });
  engine::set_launch_times(time_of);
  const SourceScope place("net.py", 7, "forward");
  const Tensor a = Tensor::rand({92, 101}, DType::F32, "CPU").realize();
  auto f = jit([](const Tensor& x) { return x.matmul(x.transpose(0, 1)); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (tuning::schedule_database().all().empty() && std::chrono::steady_clock::now() < end) {
    f(a).realize();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return tuning::schedule_database().all().size();
}

}  // namespace

TEST(TraceOfRefinement, CandidatesHaveTheirTimesAndTheOperationsOfTheKernel) {
  TemporaryDirectory directory;
  const Traced traced =
      trace_of([&] { return replay_until_refined(directory / "found.db"); }, true);
  ASSERT_EQ(traced.counted, 1);
  size_t measured = 0;
  for (const json& kernel : traced.lines.at("kernel")) {
    EXPECT_FALSE(kernel["operations"].empty()) << kernel["name"] << kernel["schedule"];
    for (const json& candidate : kernel.value("candidates", json::array()))
      measured += candidate["measured_ns"] > 0;
  }
  EXPECT_GE(measured, 2u) << "of the kernel and of a candidate";
  std::map<int64_t, std::string> names;
  for (const json& name : traced.lines.at("name")) names[name["id"]] = name["text"];
  std::map<std::string, size_t> spans;
  for (const json& span : events(traced.lines, "span"))
    if (span["category"] == 5) ++spans[names[span["name"]]];
  EXPECT_EQ(spans["make candidates"], 1u);
}

namespace {

// A kernel of some 100 ms and, on a second queue, copies of other values from the host.
json copy_beside_kernels() {
  const std::string device = "OPENCL";
  Tensor a = Tensor::full({1024, 1024}, 0.001f, DType::F32, device).contiguous().realize();
  Tensor b = matmul(a, a).realize();
  const std::vector<float> values(1 << 20, 1.0f);
  for (int i = 0; i < 4; ++i) b = matmul(b, a).realize();
  std::vector<Tensor> sums;
  for (int i = 0; i < 4; ++i)
    sums.push_back(Tensor::from(values, {1 << 20}, device).sum().realize());
  for (Tensor& sum : sums) sum.to_vector<float>();
  return json::object();
}

// The times in which a copy and a launch of another queue run, summed.
int64_t overlap_ns(const Traced& traced) {
  const std::vector<json> launches = events(traced.lines, "launch");
  int64_t sum = 0;
  for (const json& copy : events(traced.lines, "copy"))
    for (const json& launch : launches) {
      if (copy["track"] == launch["track"]) continue;
      const int64_t begin = std::max(copy["start"].get<int64_t>(), launch["start"].get<int64_t>());
      const int64_t end =
          std::min(copy["start"].get<int64_t>() + copy["duration"].get<int64_t>(),
                   launch["start"].get<int64_t>() + launch["duration"].get<int64_t>());
      sum += std::max<int64_t>(0, end - begin);
    }
  return sum;
}

}  // namespace

TEST(TraceOfQueues, CopiesBesideAKernelOverlapIt) {
  // On a loaded machine the host may give the copies after the kernels have ended.
  Traced traced;
  int64_t overlap = 0;
  for (int attempt = 0; attempt < 10 && overlap == 0; ++attempt) {
    traced = trace_of(copy_beside_kernels);
    overlap = overlap_ns(traced);
  }
  EXPECT_GT(overlap, 0);
  const auto clock = traced.lines.at("device")[0];
  EXPECT_EQ(clock["clock"], "device");
  const std::vector<json> launches = events(traced.lines, "launch");
  // In-order work never overlaps itself.
  int64_t last_end = 0;
  for (const json& launch : launches) {
    EXPECT_GE(launch["start"].get<int64_t>(), last_end);
    last_end = launch["start"].get<int64_t>() + launch["duration"].get<int64_t>();
  }
}

// A launch whose time is asked for has the driver's time.
TEST(TraceOfQueues, AMeasuredLaunchHasTheTimeOfTheDriver) {
  const Traced traced = trace_of([]() -> json {
    const std::string device = "OPENCL";
    Tensor a = Tensor::full({1024, 1024}, 0.001f, DType::F32, device).contiguous().realize();
    change_settings([](Settings& s) { s.debug = 2; });  // each launch asks the driver for its time
    static std::string log;
    set_log_sink([](std::string_view text, void*) { log += text; }, nullptr);
    for (int i = 0; i < 3; ++i) matmul(a, a + static_cast<float>(i)).realize();
    json times = json::array();
    for (size_t at = log.find(" tm "); at != log.npos; at = log.find(" tm ", at + 1))
      times.push_back(std::stod(log.substr(at + 4)) * 1000);
    return times;
  });
  const std::vector<json> launches = events(traced.lines, "launch");
  const size_t count = traced.counted.size();
  ASSERT_GT(count, 0u);
  ASSERT_LE(count, launches.size());
  size_t compared = 0;
  for (size_t i = 0; i < count; ++i) {
    const double driver_ns = traced.counted[i];
    if (driver_ns < 2e6) continue;
    ++compared;
    EXPECT_NEAR(launches[launches.size() - count + i]["duration"].get<double>(), driver_ns,
                0.05 * driver_ns);
  }
  EXPECT_GE(compared, 1u);
}

namespace {

pgr_status time_from_the_future(pgr_device*, pgr_event*, uint64_t* out_ns, pgr_error*) {
  *out_ns = UINT64_MAX / 4;
  return PGR_STATUS_OK;
}
pgr_status no_time(pgr_device*, pgr_event*, uint64_t*, pgr_error*) {
  return PGR_STATUS_DEVICE_LOST;
}

// Five kernels on an asynchronous device that `change` changes; the last is waited for before the
// program pauses.
std::vector<json> launches_with(void (*change)(runtime::DeviceState&)) {
  const Traced traced = trace_of([&]() -> json {
    runtime::Registry& registry = runtime::Registry::instance();
    registry.set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
    change(registry.find_device("REFERENCE").state());
    Tensor x = Tensor::full({100}, 0.5f, DType::F32, "REFERENCE").contiguous().realize();
    for (int i = 0; i < 5; ++i) x = (x * 2 - x * x).realize();
    x.to_vector<float>();
    usleep(300'000);
    return engine::Session::current().statistics().kernels_launched;
  });
  const std::vector<json> launches = events(traced.lines, "launch");
  EXPECT_EQ(launches.size(), traced.counted.get<size_t>());
  EXPECT_GT(launches.size(), 4u);
  const int64_t end = traced.lines.at("end")[0]["time_ns"];
  for (const json& launch : launches) {
    EXPECT_GE(launch["start"].get<int64_t>(), 0);
    EXPECT_LE(launch["start"].get<int64_t>() + launch["duration"].get<int64_t>(), end);
  }
  return launches;
}

}  // namespace

TEST(TraceOfEvents, NoLaunchEndsInTheFuture) {
  launches_with(
      [](runtime::DeviceState& device) { device.queue.event_time = time_from_the_future; });
}

TEST(TraceOfEvents, LaunchesWhoseEventsFailAreThere) {
  launches_with([](runtime::DeviceState& device) { device.queue.event_time = no_time; });
}

TEST(TraceOfEvents, WithoutAClockAWaitShowsTheEndsOfLaunches) {
  const std::vector<json> launches =
      launches_with([](runtime::DeviceState& device) { device.has_profile = false; });
  for (const json& launch : launches) EXPECT_LT(launch["duration"], 300'000'000);  // no pause
}

INSTANTIATE_TEST_SUITE_P(Devices, Trace, testing::Values("CPU", "REFERENCE"),
                         [](const auto& name_of) { return name_of.param; });

TEST(TraceOfModels, OperationsAreNamedByTheNodesOfTheFile) {
  TemporaryDirectory directory;
  const std::string path = directory / "net.onnx";
  std::ofstream(path, std::ios::binary)
      << onnx::model_of_bytes(onnx::Message()
                                  .message(1, onnx::node("Exp", {"x"}, {"e"}))
                                  .message(1, onnx::node("Sin", {"e"}, {"y"}))
                                  .text(2, "net")
                                  .message(11, onnx::value("x", {2}))
                                  .message(12, onnx::value("y", {2})));
  const Traced traced = trace_of([&]() -> json {
    const onnx::Model model = onnx::Model::load(path, "CPU");
    return model({Tensor::from({1.0F, 2.0F})})[0].to_vector<float>();
  });
  std::set<std::string> found;
  for (const json& operation : traced.lines.at("operation"))
    found.insert(fmt::format("{} {}:{} {}", operation["name"].get<std::string>(),
                             operation["file"].get<std::string>(), operation["line"].get<int>(),
                             operation["function"].get<std::string>()));
  EXPECT_THAT(found, testing::IsSupersetOf({"exp net.onnx:1 the Exp", "sin net.onnx:2 the Sin"}));
}
