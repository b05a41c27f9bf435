// An order of kernels in which each stands behind those that it reads, kept while they merge: the
// algorithm of Pearce and Kelly (A dynamic topological sort algorithm for directed acyclic graphs,
// 2006). Only the kernels between the two ends of a new edge are looked at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plugrad::schedule {

class KernelOrder {
 public:
  /// Of kernels numbered below `count`. What is looked at is added to `visits`.
  KernelOrder(size_t count, uint64_t& visits)
      : visits_(visits), reads_(count), read_by_(count), rank_(count, 0), seen_(count, 0) {}

  /// Puts `kernel`, which nothing reads yet and which reads `others`, behind all others.
  void append(uint32_t kernel, std::span<const uint32_t> others);

  /// Lets `kernel` read `others` as well. False, and nothing changes, where one of them depends on
  /// `kernel`, or where too many kernels lie between them to find that out.
  bool reads_too(uint32_t kernel, std::span<const uint32_t> others);

 private:
  bool find_before(uint32_t kernel, std::span<const uint32_t> others);
  bool find_after(uint32_t kernel, uint32_t last_rank);
  bool look_at(std::span<const uint32_t> kernels);
  void add(uint32_t kernel, std::span<const uint32_t> others);
  void move();

  uint64_t& visits_;
  std::vector<std::vector<uint32_t>> reads_, read_by_;  // by kernel
  std::vector<uint32_t> rank_;                          // by kernel: its place in the order
  uint32_t next_rank_ = 1;
  std::vector<uint32_t> seen_;
  uint32_t epoch_ = 0;
  size_t edges_ = 0;                      // looked at for the present question
  std::vector<uint32_t> before_, after_;  // that are to stand before a kernel, and it and behind it
};

}  // namespace plugrad::schedule
