// A program of several ranks that saves and loads sharded checkpoints, for checkpoint_faults_test.py.
// Ranks report to a file, as the launcher may be gone; errors end them with exit code 3.
//   train FOLDER FROM TO     steps FROM to TO of a training, resumed from FOLDER and saved there
//   save FOLDER REPORT       saves 1, 2, …, until it is killed
//   check FOLDER             prints the number of the save that FOLDER has
//   full FOLDER REPORT RANK  a save for which there is no space in RANK (-1: in the file system)
//   memory - REPORT RANK     a training for which RANK has too little memory of its device
//   malloc - REPORT RANK     the same of its process
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

constexpr int64_t kRows = 1001, kColumns = 300;  // parts are uneven
constexpr int kMostSteps = 4000;

const char* report_path = nullptr;

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void report(const std::string& text) {
  const std::string line = text + "\n";
  const int file = ::open(report_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (::write(file, line.data(), line.size()) < 0) std::abort();
  ::close(file);
}

void report_error(const Error& error) {
  report("error " + std::to_string(distributed::rank()) + " " + std::to_string(seconds()) + " " +
         error.what());
}

Mesh mesh() {
  const int64_t ranks = distributed::size();
  return ranks == 4 ? Mesh({{"data", 2}, {"model", 2}}, {"CPU"})
                    : Mesh({{"data", ranks}, {"model", 1}}, {"CPU"});
}

Tensor filled(const Shape& shape, int value, const ShardSpec& spec, int64_t times = 1) {
  Shape larger = shape;
  larger[0] *= times;
  return Tensor::full(larger, value).to("CPU").shard(mesh(), spec);
}

/// Tensors of `value`, cut in several ways. `times` makes them longer.
nn::StateDict state_of(int value, int64_t times = 1) {
  nn::StateDict state = {{"rows", filled({kRows, kColumns}, value, {"data"}, times)},
                         {"columns", filled({kColumns, kRows}, value, {"", "data+model"}, times)},
                         {"both", filled({kRows, kColumns}, value, {"model", "data"}, times)},
                         {"everywhere", filled({kRows}, value, {}, times)},
                         {"step", Tensor::full({1}, value).to("CPU")}};
  for (auto& [name, tensor] : state) tensor.realize();
  return state;
}

void save_for_ever(const std::string& folder) {
  const std::string rank = std::to_string(distributed::rank());
  report("process " + rank + " " + std::to_string(::getpid()));
  for (int save = 1;; ++save) {
    const nn::StateDict state = state_of(save);
    report("begin " + std::to_string(save));
    nn::save_sharded(state, folder);
    report("saved " + std::to_string(save));
  }
}

/// The value of all elements of the state in the folder; -1 if they differ.
int value_in(const std::string& folder) {
  const nn::StateDict state = state_of(0);
  nn::load_sharded(state, folder);
  const int value = static_cast<int>(state.back().second.item<float>());
  for (const auto& [name, tensor] : state)
    for (const float x : tensor.to_vector<float>())
      if (x != static_cast<float>(value)) return -1;
  return value;
}

void check(const std::string& folder) {
  const int value = value_in(folder);
  if (distributed::rank() == 0) std::printf("value %d\n", value);
}

/// A small save, a large one for which there is no space, and a small one: ranks go on.
void fill(const std::string& folder, int victim) {
  nn::save_sharded(state_of(1), folder);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{100'000, before.rlim_max};
  if (victim == distributed::rank()) ::setrlimit(RLIMIT_FSIZE, &little);
  report("fault " + std::to_string(seconds()));
  try {
    nn::save_sharded(state_of(2, victim < 0 ? 3 : 1), folder);
    report("saved 2");
  } catch (const Error& error) {
    report_error(error);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  report("value " + std::to_string(value_in(folder)));
  nn::save_sharded(state_of(3), folder);
  report("value " + std::to_string(value_in(folder)));
}

/// No more memory than the process has now, and a little.
void limit_process() {
  constexpr rlim_t kLeftBytes = 20 << 20;
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kLeftBytes;
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
}

/// Each step keeps a tensor, so that the rank with the limit fails at some step.
void exhaust(int victim, bool of_process) {
  Tensor w = filled({64, 64}, 1, {"data"}).cast(DType::F32).realize();
  std::vector<Tensor> kept;
  for (int step = 0; step < kMostSteps; ++step) {
    const Tensor x = Tensor::full({256 * distributed::size(), 64}, 0.5).to("CPU");
    kept.push_back(x.shard(mesh(), {"data"}).matmul(w).realize());
    w.assign(w * 0.5 + kept.back().mean() * 1e-3).realize();
    if (step != 3 || victim != distributed::rank()) continue;
    if (of_process) limit_process();
    report("fault " + std::to_string(seconds()));
  }
}

struct Net {
  nn::Linear hidden{5, 7}, out{7, 3};
  PLUGRAD_FIELDS(hidden, out)
};
struct Training {
  Net& net;
  optim::Adam& opt;
  PLUGRAD_FIELDS(net, opt)
};

Tensor values(const Shape& shape, double first, double step) {
  std::vector<float> all;
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
    all.push_back(static_cast<float>(first + step * static_cast<double>(i)));
  return Tensor::from(all, shape, "CPU");
}

void train(const std::string& folder, int from, int to) {
  Tensor::manual_seed(from + 1);  // a resumed one does not depend on its first values
  Net net;
  nn::shard(net, mesh(), nn::tensor_parallel(net, "model"));
  optim::Adam opt(nn::parameters(net), {.lr = 0.05});
  opt.shard_state("data");
  if (from > 0) nn::load_sharded(Training{net, opt}, folder);
  for (int step = from; step < to; ++step) {
    const Tensor x = values({9, 5}, 0.1 * step, 0.02).shard(mesh(), {"data"});
    const Tensor y = values({9, 3}, -1.0, 0.07).shard(mesh(), {"data"});
    opt.zero_grad();
    const Tensor loss = (net.out(net.hidden(x).tanh()) - y).square().mean();
    loss.backward();
    opt.step();
    const float value = loss.item<float>();
    if (distributed::rank() == 0) std::printf("step %d: loss %.7g\n", step, value);
  }
  nn::save_sharded(Training{net, opt}, folder);
}

/// Before init(), as settings are read once.
void limit_memory(int victim) {
  const char* const rank = std::getenv("PMI_RANK");
  if (rank != nullptr && std::atoi(rank) == victim) ::setenv("PLUGRAD_MEMORY_LIMIT", "8M", 1);
}

int run(const std::string& mode, char** arguments) {
  const std::string folder = arguments[0];
  if (mode == "train") {
    train(folder, std::atoi(arguments[1]), std::atoi(arguments[2]));
  } else if (mode == "check") {
    check(folder);
  } else {
    report_path = arguments[1];
    if (mode == "save") save_for_ever(folder);
    if (mode == "full") fill(folder, std::atoi(arguments[2]));
    if (mode == "memory" || mode == "malloc") exhaust(std::atoi(arguments[2]), mode == "malloc");
  }
  return 0;
}

}  // namespace
}  // namespace plugrad

int main(int, char** argv) {
  using plugrad::Error;
  const std::string mode = argv[1];
  if (mode == "memory") plugrad::limit_memory(std::atoi(argv[4]));
  try {
    plugrad::distributed::init();
    return plugrad::run(mode, argv + 2);
  } catch (const Error& error) {
    if (plugrad::report_path != nullptr) plugrad::report_error(error);
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
