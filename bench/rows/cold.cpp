// First calls of fresh processes with an empty kernel cache: processor time, in turns with processes of the peers that
// are as fresh (bench/peers/cold.py, onnxruntime_files.py).
#include "bench/rows/cold.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "bench/harness.h"
#include "bench/isa.h"
#include "bench/networks/diffusion_step.h"
#include "bench/networks/mnist_step.h"
#include "bench/networks/networks.h"
#include "bench/row.h"
#include "bench/rows/cache_folder.h"
#include "engine/session.h"
#include "plugrad/device.h"
#include "plugrad/numpy.h"
#include "plugrad/onnx.h"

namespace plugrad::bench {
namespace {

constexpr int kColdTurns = 3;

namespace fs = std::filesystem;

struct Program {
  std::string name;  // of a file: its path
  int64_t side;      // of a network's image; 0: a training step or a file
  bool is_file() const { return name.ends_with(".onnx"); }
};
const Program kPrograms[] = {{"mnist_step", 0},     {"diffusion_step", 0}, {"resnet18", 224},
                             {"mobilenet_v2", 224}, {"vit_tiny", 224},     {"unet", 256}};

// From the file on: its inputs NAME/INPUT.npy are on the device before.
std::function<void()> call_of_file(const std::string& path) {
  std::map<std::string, Tensor> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path(path).replace_extension()))
    if (entry.path().extension() == ".npy")
      inputs[entry.path().stem().string()] = load_npy(entry.path().string()).realize();
  return [=] {
    for (const auto& [name, output] : onnx::Model::load(path)(inputs)) output.to_bytes();
  };
}

std::function<void()> call_of(const std::string& program) {
  if (program.ends_with(".onnx")) return call_of_file(program);
  if (program == "mnist_step") return [step = std::make_shared<MnistStep>(64)] { step->run(); };
  if (program == "diffusion_step")
    return [step = std::make_shared<DiffusionStep>()] { step->run(); };
  return [network = make_network(program, 1)] { network.call(network.data).to_bytes(); };
}

// Of helpers that have ended.
double seconds_of_children() {
  rusage use{};
  getrusage(RUSAGE_CHILDREN, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

nlohmann::json our_call(const Program& program, int threads) {
  const CacheFolder folder;
  return folder.steps({Device::default_device(), program.name},
                      {fmt::format("PLUGRAD_THREADS={}", threads),
                       fmt::format("PLUGRAD_CPU_TARGET={}", chosen_isa().target)});
}

// Seconds; none from a peer that is not there, or does not have the program.
std::optional<double> call_of_peer(Peers& peers, const PeerProgram& peer, const Program& program,
                                   int threads) {
  const auto process = peers.start(peer, threads, true);
  if (!process) return {};
  const std::string file =
      (fs::temp_directory_path() / fmt::format("plugrad-bench-{}", getpid())).string();
  const auto answer = process->ask({{"do", "setup"},
                                    {"kind", "cold"},
                                    {"program", program.name},
                                    {"side", program.side},
                                    {"shapes", nlohmann::json::array()},
                                    {"input", "/dev/null"},
                                    {"output", file}});
  if (!answer || answer->at("variants").empty()) return {};
  float seconds = 0;
  std::ifstream(file + ".0", std::ios::binary)
      .read(reinterpret_cast<char*>(&seconds), sizeof seconds);
  fs::remove(file + ".0");
  return seconds;
}

std::vector<PeerProgram> peers_of(const Program& program) {
  std::vector<PeerProgram> peers;
  for (PeerProgram peer : peer_programs()) {
    const bool is_onnx = std::strcmp(peer.name, "onnxruntime") == 0;
    if (is_onnx && program.is_file()) peer.script = "onnxruntime_files.py";
    if (is_onnx || (!program.is_file() && std::strcmp(peer.name, "pytorch") == 0))
      peers.push_back(peer);
  }
  return peers;
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// How many times the fastest peer's time; none without a peer.
std::optional<double> report_cold(const std::string& name, const Program& program, int threads,
                                  Peers& peers, const Report& report) {
  std::vector<double> ours;
  std::map<std::string, std::vector<double>> theirs;
  double compiled = 0;
  for (int turn = 0; turn < kColdTurns; ++turn) {
    const nlohmann::json call = our_call(program, threads);
    ours.push_back(call.at("seconds"));
    compiled = call.at("kernels");
    for (const PeerProgram& peer : peers_of(program))
      if (const auto seconds = call_of_peer(peers, peer, program, threads))
        theirs[peer.title].push_back(*seconds);
  }
  Result result{.name = name, .value = middle(ours), .unit = "s", .higher_is_better = false};
  for (const auto& [title, seconds] : theirs) result.peers.push_back({title, middle(seconds)});
  for (const Peer& peer : result.peers)
    if (!result.peer || peer.value < result.peer->value) result.peer = peer;
  report(result);
  report({.name = name + ", kernels compiled",
          .value = compiled,
          .unit = "kernels",
          .higher_is_better = false});
  return result.peer ? std::optional(1 / result.ratio()) : std::nullopt;
}

using Ratios = std::vector<std::pair<double, std::string>>;

Row file_row(const std::string& id, const std::string& path, int threads,
             std::shared_ptr<Ratios> ratios) {
  const std::string name = fmt::format("cold {}/threads:{}", id, threads);
  return {{name, name + ", kernels compiled"}, threads, [=](Peers& peers, const Report& report) {
            try {
              if (const auto ratio = report_cold(name, {path, 0}, threads, peers, report))
                ratios->emplace_back(*ratio, id);
            } catch (const std::exception& error) {
              fmt::print(stderr, "plugrad bench: {}: {}\n", name, error.what());
              return false;
            }
            return true;
          }};
}

// Of the rows measured before.
Row summary_row(int threads, std::shared_ptr<Ratios> ratios) {
  const std::string name = fmt::format("cold zoo/threads:{}, ", threads);
  const std::string mean_name = name + "mean of times the peer's", worst_name = name + "worst";
  return {{mean_name, worst_name}, threads, [=](Peers&, const Report& report) {
            if (ratios->empty()) return true;
            double logarithms = 0;
            for (const auto& [ratio, id] : *ratios) logarithms += std::log(ratio);
            const double mean = std::exp(logarithms / static_cast<double>(ratios->size()));
            const auto& [worst, id] = *std::ranges::max_element(*ratios);
            report({.name = mean_name, .value = mean, .unit = "times", .higher_is_better = false});
            report({.name = worst_name,
                    .value = worst,
                    .unit = "times, " + id,
                    .higher_is_better = false});
            return true;
          }};
}

}  // namespace

nlohmann::json run_cold_call(const std::string& device, const std::string& program) {
  if (!device.empty()) Device::set_default_device(device);
  const auto call = call_of(program);
  const auto kernels = [] { return engine::Session::current().statistics().kernels_compiled; };
  const uint64_t kernels_before = kernels();
  const double before = seconds_of_children(), seconds = processor_time_of(call);
  return {{"seconds", seconds + seconds_of_children() - before},
          {"kernels", kernels() - kernels_before}};
}

std::vector<Row> cold_file_rows(const std::map<std::string, std::string>& files) {
  std::vector<Row> rows;
  for (const int threads : {1, 2}) {
    const auto ratios = std::make_shared<Ratios>();
    for (const auto& [id, path] : files) rows.push_back(file_row(id, path, threads, ratios));
    rows.push_back(summary_row(threads, ratios));
  }
  return rows;
}

std::vector<Row> cold_rows() {
  std::vector<Row> rows;
  for (const int threads : {1, 2})
    for (const Program& program : kPrograms) {
      const std::string name = fmt::format("cold {}/threads:{}", program.name, threads);
      rows.push_back(
          {{name, name + ", kernels compiled"}, threads, [=](Peers& peers, const Report& report) {
             report_cold(name, program, threads, peers, report);
             return true;
           }});
    }
  return rows;
}

}  // namespace plugrad::bench
