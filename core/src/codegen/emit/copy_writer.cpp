#include "codegen/emit/copy_writer.h"

#include <algorithm>
#include <map>

#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

// Pointer, index and gate of a load, without the value of lanes whose gate is false.
constexpr size_t kCopySources = 3;

std::span<const Id> copied(const Graph& g, Id load) {
  const auto sources = g.sources(load);
  return sources.subspan(0, std::min(kCopySources, sources.size()));
}

}  // namespace

int64_t CopyWriter::ahead(Id filled) const {
  return array_info(graph_, filled_parts(graph_, filled).array).ahead;
}

Id CopyWriter::load(Id store) {
  return asynchronous_load(graph_, caps_, store, lanes_[graph_.sources(store)[2]]);
}

bool CopyWriter::is_asynchronous(Id filled) {
  return std::ranges::any_of(filled_parts(graph_, filled).stores,
                             [&](Id store) { return load(store) != kNoId; });
}

void CopyWriter::start(std::span<const Id> arrays, uint32_t begin, uint32_t end, const Fill& fill) {
  int64_t most = 0;
  for (Id id : arrays) most = std::max(most, ahead(id));
  for (int64_t iteration = 0; iteration < most; ++iteration) {
    std::vector<Id> starting;
    std::ranges::copy_if(arrays, std::back_inserter(starting),
                         [&](Id id) { return ahead(id) > iteration; });
    copy(starting, later(begin, iteration), end, fill);
    commit(arrays);
  }
}

// Each iteration commits one group: the tiles that are used `ahead` iterations later. Waits until at
// most `ahead` - 1 groups are pending; of several arrays, the smallest `ahead` counts.
void CopyWriter::wait(std::span<const Id> arrays) {
  if (std::ranges::none_of(arrays, [&](Id id) { return is_asynchronous(id); })) return;
  int64_t fewest = INT64_MAX;
  for (Id id : arrays) fewest = std::min(fewest, ahead(id));
  writer_.inst(PGR_OP_ASYNC_WAIT, DType::Void, 1, {}, static_cast<uint64_t>(fewest - 1));
}

void CopyWriter::go_on(std::span<const Id> arrays, uint32_t iteration, uint32_t end,
                       const Fill& fill) {
  std::map<int64_t, std::vector<Id>> by_ahead;
  for (Id id : arrays) by_ahead[ahead(id)].push_back(id);
  for (const auto& [ahead, members] : by_ahead) copy(members, later(iteration, ahead), end, fill);
  commit(arrays);
}

uint32_t CopyWriter::later(uint32_t iteration, int64_t ahead) {
  if (ahead == 0) return iteration;
  const auto dtype = static_cast<DType>(writer_.insts()[iteration].dtype);
  const uint32_t more = writer_.constant(dtype, static_cast<uint64_t>(ahead));
  return writer_.inst(PGR_OP_ADD, dtype, 1, {iteration, more});
}

// Writes the copies under the condition `iteration < end`.
void CopyWriter::copy(std::span<const Id> arrays, uint32_t iteration, uint32_t end,
                      const Fill& fill) {
  const uint32_t exists = writer_.inst(PGR_OP_CMPLT, DType::Bool, 1, {iteration, end});
  const uint32_t block = writer_.begin_if(exists);
  is_copying_ = true;
  for (Id filled : arrays) fill(filled, iteration);
  is_copying_ = false;
  writer_.end_if(block);
}

void CopyWriter::commit(std::span<const Id> arrays) {
  if (std::ranges::any_of(arrays, [&](Id id) { return is_asynchronous(id); }))
    writer_.inst(PGR_OP_ASYNC_COMMIT, DType::Void, 1, {});
}

std::vector<Id> CopyWriter::needs(Id store) {
  const auto sources = graph_.sources(store);
  const Id copy = is_copying_ ? load(store) : kNoId;
  if (copy == kNoId) return {sources.begin(), sources.end()};
  std::vector<Id> out = {sources[0], sources[1]};
  if (sources.size() == 4) out.push_back(sources[3]);
  const auto more = copied(graph_, copy);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

bool CopyWriter::write(Id store, std::span<const uint32_t> values) {
  const Id copy = is_copying_ ? load(store) : kNoId;
  if (copy == kNoId) return false;
  const auto sources = graph_.sources(store);
  std::vector<uint32_t> numbers = {values[sources[0]], values[sources[1]]};
  for (Id s : copied(graph_, copy)) numbers.push_back(values[s]);
  writer_.inst(PGR_OP_ASYNC_COPY, DType::Void, lanes_[copy], numbers);
  return true;
}

}  // namespace plugrad::codegen
