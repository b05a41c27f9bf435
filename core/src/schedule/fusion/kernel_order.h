// A topological order of kernels that is kept while kernels merge: the algorithm of Pearce and
// Kelly (A dynamic topological sort algorithm for directed acyclic graphs, 2006). It visits only
// the kernels between the two ends of a new edge.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/visit_count.h"

namespace plugrad::schedule {

class KernelOrder {
 public:
  /// Beyond this a merge is refused. Measured plans of up to 1,000 kernels stay below.
  static constexpr size_t kMostEdges = 16 * 1024;

  /// For kernels numbered below `count`. Adds its node visits to `visits`.
  KernelOrder(size_t count, VisitCount& visits)
      : visits_(visits), reads_(count), read_by_(count), rank_(count, 0), seen_(count, 0) {}

  /// Appends `kernel`, which reads `others` and which no kernel reads yet.
  void append(uint32_t kernel, std::span<const uint32_t> others);

  /// Adds edges from `others` to `kernel`. Returns false, without a change, if one of them depends
  /// on `kernel`, or if the search visits more edges than `most_edges`.
  bool reads_too(uint32_t kernel, std::span<const uint32_t> others, size_t most_edges = kMostEdges);

 private:
  bool find_before(uint32_t kernel, std::span<const uint32_t> others);
  bool find_after(uint32_t kernel, uint32_t last_rank);
  bool look_at(std::span<const uint32_t> kernels);
  void add(uint32_t kernel, std::span<const uint32_t> others);
  void move();

  VisitCount& visits_;
  std::vector<std::vector<uint32_t>> reads_, read_by_;  // by kernel
  std::vector<uint32_t> rank_;                          // by kernel: its position in the order
  uint32_t next_rank_ = 1;
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 0;
  size_t edges_ = 0, most_edges_ = kMostEdges;  // visited by the current call, and their limit
  // kernels to move before a kernel; the kernel and those to move behind it
  std::vector<uint32_t> before_, after_;
};

}  // namespace plugrad::schedule
