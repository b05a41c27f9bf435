// Hand-vectorised kernels: a reference for careful C on this machine. Each processes rows or
// elements [begin, end), so that threads can share the work.
#pragma once

#include <cstddef>

namespace plugrad::bench {

struct HandKernels {
  /// Sum of relu(a b + c).
  float (*map_reduce)(const float* a, const float* b, const float* c, size_t begin, size_t end);
  void (*softmax)(const float* x, float* y, size_t columns, size_t begin, size_t end);
  void (*layernorm)(const float* x, float* y, size_t columns, size_t begin, size_t end);
  /// softmax(q k^T / sqrt(width)) v for rows of q, `queries` per head, in whole blocks of
  /// `attention_rows`. The number of keys is a multiple of 64, the width is 64.
  void (*attention)(const float* q, const float* k, const float* v, float* y, size_t queries,
                    size_t keys, size_t begin, size_t end);
  size_t attention_rows;
  /// y = m x, for rows of m.
  void (*matvec)(const float* m, const float* x, float* y, size_t columns, size_t begin,
                 size_t end);
  /// The sum of x: measures read bandwidth.
  float (*read)(const float* x, size_t begin, size_t end);
  /// Independent chains of multiply-adds, `rounds` long: measures arithmetic throughput. `flops`
  /// receives their number.
  float (*multiply_add)(long rounds, double& flops);
  int lanes;  ///< floats per vector
};

/// The kernels with the widest vectors that the processor and the chosen instruction set support.
const HandKernels& hand_kernels();

// The same file, compiled for each instruction set.
namespace generic {
HandKernels kernels();
}
namespace avx2 {
HandKernels kernels();
}
namespace avx512 {
HandKernels kernels();
}

}  // namespace plugrad::bench
