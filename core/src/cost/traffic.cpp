#include "cost/traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plugrad::cost {
namespace {

constexpr double kLine = 64, kPage = 4096;  // bytes
// Of a line in a stream, beside the loads themselves: 48, 16 and 7 bytes a cycle, as cores of
// servers of 2020 and later sustain with prefetching.
constexpr double kLineCycles[] = {1.3, 3, 6};
constexpr double kPages = 48, kPageCycles = 7;  // first-level translations; one from the second
constexpr double kWays = 8;                     // lines of a set, at least
constexpr double kShare = 0.75;                 // of a cache, for operands

// The loops that run inside of a place, as bits.
using Loops = uint64_t;

int64_t turns_of(const Nest& nest, size_t loop) {
  return (nest.sizes[loop] + nest.tile[loop] - 1) / nest.tile[loop];
}

int64_t count_of(const Nest& nest, Loops loops, size_t loop) {
  return loops >> loop & 1 ? nest.sizes[loop] : std::min(nest.tile[loop], nest.sizes[loop]);
}

// Blocks of `block` bytes that the operand has in those loops and the tile.
double blocks_of(const Nest& nest, const Operand& operand, Loops loops, double block) {
  const auto width = static_cast<double>(operand.element_bytes);
  double elements = 1, run = 0, apart = 1;
  for (size_t loop = 0; loop < nest.sizes.size(); ++loop) {
    const int64_t count = count_of(nest, loops, loop);
    if (operand.steps[loop] == 0 || count == 1) continue;
    elements *= static_cast<double>(count);
    const double step =
        operand.steps[loop] == kNear ? width : std::abs(static_cast<double>(operand.steps[loop]));
    if (step < block)
      run += step * static_cast<double>(count - 1);
    else
      apart *= static_cast<double>(count);
  }
  if (operand.is_packed) return std::ceil(elements * width / block);
  return std::min(elements, apart * std::ceil((run + width) / block));
}

double blocks_of_all(const Nest& nest, std::span<const Operand> operands, Loops loops,
                     double block) {
  double blocks = 0;
  for (const Operand& operand : operands) blocks += blocks_of(nest, operand, loops, block);
  return blocks;
}

// Lines that a cache keeps of those that lie so many bytes apart.
double reach(double step, uint64_t bytes) {
  const auto period = std::max<uint64_t>(bytes / static_cast<uint64_t>(kWays), 64);
  const uint64_t apart = std::gcd(static_cast<uint64_t>(std::max(step, kLine)), period);
  return kWays * static_cast<double>(period / std::max<uint64_t>(apart, 64));
}

// The step that all lines of the operand which lie apart have in common; 0 where they are a run.
uint64_t common_step(const Nest& nest, const Operand& operand, Loops loops) {
  uint64_t step = 0;
  for (size_t loop = 0; loop < nest.sizes.size(); ++loop) {
    if (count_of(nest, loops, loop) == 1 || operand.steps[loop] == kNear) continue;
    const auto apart = static_cast<uint64_t>(std::abs(operand.steps[loop]));
    if (static_cast<double>(apart) >= kLine) step = std::gcd(step, apart);
  }
  return step;
}

// Lines of the cache that the operands take, those of its sets that they do not reach among them.
double lines_taken(const Nest& nest, std::span<const Operand> operands, Loops loops,
                   uint64_t bytes) {
  double taken = 0;
  for (const Operand& operand : operands) {
    const double lines = blocks_of(nest, operand, loops, kLine);
    const uint64_t step = operand.is_packed ? 0 : common_step(nest, operand, loops);
    const double all = static_cast<double>(bytes) / kLine;
    taken += step == 0
                 ? lines
                 : std::max(lines, lines / reach(static_cast<double>(step), bytes) * all * kShare);
  }
  return taken;
}

// Blocks that are fetched into a store that keeps `room` of them. `taken` says how many of its
// places what the loops read takes. Where a little too much is read, some of it is kept.
template <class Taken>
double fetched(const Nest& nest, std::span<const Operand> operands, double block, double room,
               const Taken& taken) {
  double turns = 1;
  for (size_t loop = 0; loop < nest.sizes.size(); ++loop)
    turns *= static_cast<double>(turns_of(nest, loop));
  Loops inside = 0;
  double blocks = turns * blocks_of_all(nest, operands, inside, block);
  for (size_t place = nest.order.size(); place-- > 0;) {
    const double kept = std::clamp(2 - taken(inside) / room, 0.0, 1.0);
    inside |= Loops{1} << nest.order[place];
    turns /= static_cast<double>(turns_of(nest, nest.order[place]));
    blocks = kept * turns * blocks_of_all(nest, operands, inside, block) + (1 - kept) * blocks;
    if (kept < 1) break;
  }
  return blocks;
}

}  // namespace

double traffic_cycles(const Nest& nest, std::span<const Operand> operands, const Caches& caches) {
  double cycles = kPageCycles * fetched(nest, operands, kPage, kPages, [&](Loops loops) {
                    return blocks_of_all(nest, operands, loops, kPage);
                  });
  for (size_t level = 0; level < caches.bytes.size(); ++level) {
    const uint64_t bytes = caches.bytes[level];
    if (bytes == 0) continue;
    const double room = static_cast<double>(bytes) * kShare / kLine;
    cycles += line_cycles(level) * fetched(nest, operands, kLine, room, [&](Loops loops) {
                return lines_taken(nest, operands, loops, bytes);
              });
  }
  return cycles;
}

double line_cycles(size_t level) {
  return kLineCycles[std::min(level, std::size(kLineCycles) - 1)];
}

size_t cache_that_keeps(const Rows& rows, const Caches& caches) {
  for (size_t level = 0; level < caches.bytes.size(); ++level) {
    const uint64_t bytes = caches.bytes[level];
    const double lines = rows.count * rows.lines, all = static_cast<double>(bytes) / kLine;
    if (bytes != 0 && lines <= std::min(all, reach(rows.step, bytes) * rows.lines)) return level;
  }
  return caches.bytes.size();
}

}  // namespace plugrad::cost
