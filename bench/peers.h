// What we are measured against, as far as this machine has it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace plugrad::bench {

/// OpenBLAS, opened when it is asked for. Null where it is not installed.
class OpenBlas {
 public:
  static const OpenBlas* find();
  void set_threads(int count) const { set_threads_(count); }
  /// c = a b, row-major, n x n.
  void sgemm(int n, const float* a, const float* b, float* c) const;

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  void (*set_threads_)(int) = nullptr;
  Sgemm sgemm_ = nullptr;
};

/// Reads `count` floats of three arrays once with `threads` threads and adds them up, as fast as plain C with
/// vector types does: the time that moving the data costs.
double read_loop(const float* a, const float* b, const float* c, size_t count, int threads);

/// Multiply-adds of f32 that this machine's widest vectors do with `threads` threads, in FLOP/s.
double peak_flops(int threads);

/// Seconds that a program of bench/peers takes for one round under PyTorch, or nothing where
/// PLUGRAD_PEER_PYTHON (else python3) has no PyTorch.
std::optional<double> torch_seconds(const std::string& program, int threads);

}  // namespace plugrad::bench
