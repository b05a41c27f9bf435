#include "bench/peers/peers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/settings.h"
#include "bench/isa.h"

namespace plugrad::bench {
namespace {

// Makes malloc keep freed memory, on huge pages.
std::vector<std::string> tuned_malloc() {
  return {"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=100000000000",
          "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};
}

std::vector<std::string> words_of(const PeerProgram& program) {
  if (!program.script) return {"/proc/self/exe", "bench-peer", program.name};
  const std::string python =
      environment_variable(program.python)
          .value_or(environment_variable("PLUGRAD_PEER_PYTHON").value_or("python3"));
  return {python, std::string(PLUGRAD_BENCH_PEERS) + "/" + program.script, program.title};
}

std::vector<std::string> environment_of(const PeerProgram& program, int threads, bool is_passive) {
  std::vector<std::string> all = program.environment;
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                           "MKL_NUM_THREADS", "CPU_COUNT"})
    all.push_back(fmt::format("{}={}", name, threads));
  const Isa& isa = chosen_isa();
  all.insert(all.end(), isa.environment.begin(), isa.environment.end());
  all.push_back(fmt::format("PLUGRAD_CPU_TARGET={}", isa.target));  // for the hand-written kernels
  if (is_passive) all.emplace_back("OMP_WAIT_POLICY=passive");
  if (is_passive) return all;
  all.emplace_back("OMP_WAIT_POLICY=active");
  all.emplace_back("KMP_BLOCKTIME=infinite");
  all.emplace_back("OPENBLAS_THREAD_TIMEOUT=30");  // 2^30 cycles
  return all;
}

}  // namespace

const std::vector<PeerProgram>& peer_programs() {
  static const char* const kPython = "PLUGRAD_PEER_PYTHON";
  static const std::vector<PeerProgram> programs = {
      {"c", "C", "", nullptr, nullptr, {}},
      {"openblas", "OpenBLAS", "apt install libopenblas0-pthread", nullptr, nullptr, {}},
      {"blis", "BLIS", "apt install libblis4-openmp", nullptr, nullptr, {}},
      {"onednn", "oneDNN", "apt install libdnnl2", nullptr, nullptr, {}},
      {"pytorch",
       "PyTorch",
       "pip install torch numpy, into the Python that PLUGRAD_PEER_PYTHON names",
       "torch_peer.py",
       kPython,
       {}},
      {"pytorch-tuned", "PyTorch, tuned malloc", "as pytorch", "torch_peer.py", kPython,
       tuned_malloc()},
      {"onnxruntime",
       "ONNX Runtime",
       "pip install onnxruntime onnx torch, into the Python that PLUGRAD_PEER_PYTHON names",
       "onnxruntime_peer.py",
       kPython,
       {}},
      {"tinygrad",
       "tinygrad",
       "apt install clang-19; pip install tinygrad, into the Python (3.11 or later) that "
       "PLUGRAD_PEER_TINYGRAD names",
       "tinygrad_peer.py",
       "PLUGRAD_PEER_TINYGRAD",
       {"DEV=CPU", "CC=clang-19"}},
  };
  return programs;
}

std::unique_ptr<PeerProcess> Peers::start(const PeerProgram& program, int threads,
                                          bool is_passive) const {
  if (std::find(names_.begin(), names_.end(), program.name) == names_.end()) return nullptr;
  auto process = std::make_unique<PeerProcess>(words_of(program),
                                               environment_of(program, threads, is_passive));
  return process->found() ? std::move(process) : nullptr;
}

std::vector<PeerRun> Peers::runs() const {
  std::vector<PeerRun> runs;
  for (const PeerProgram& program : peer_programs())
    for (const auto& [key, process] : running_) {
      if (std::get<0>(key) != program.name || !process) continue;
      runs.push_back({program.title, process->isa().name, process->keeps_to(chosen_isa())});
      break;
    }
  return runs;
}

PeerProcess* Peers::open(const PeerProgram& program, int threads, bool is_passive) {
  const auto [place, added] = running_.try_emplace({program.name, threads, is_passive});
  if (added) place->second = start(program, threads, is_passive);
  return place->second.get();
}

}  // namespace plugrad::bench
