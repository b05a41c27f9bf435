// Copies values back to the host.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "engine/plan/size_checks.h"
#include "engine/recording/call_observer.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "engine/views/leading_parts.h"
#include "ir/round.h"

namespace plugrad::engine {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;

bool repeats_or_reorders(Op op) {
  return (is_movement(op) && op != Op::Pad) || op == Op::Detach || op == Op::Bounded ||
         op == Op::Function;
}

uint64_t cast_bits(uint64_t bits, DType from, DType to) {
  if (is_float(from)) return bits_of(std::bit_cast<double>(bits), to);
  if (from == DType::U64 && is_float(to)) return bits_of(static_cast<double>(bits), to);
  return bits_of(static_cast<int64_t>(bits), to);
}

std::vector<std::byte> cast_elements(std::span<const std::byte> elements, DType from,
                                     std::span<const DType> casts) {
  const size_t step = size_of(from), size = size_of(casts.back());
  std::vector<std::byte> out(elements.size() / step * size);
  for (size_t i = 0; i < elements.size() / step; ++i) {
    uint64_t stored = 0;
    std::memcpy(&stored, elements.data() + i * step, step);
    uint64_t bits = constant_bits(stored, from);
    for (DType before = from; DType to : casts)
      bits = cast_bits(bits, std::exchange(before, to), to);
    std::memcpy(out.data() + i * size, &bits, size);
  }
  return out;
}

void fill(std::span<std::byte> out, uint64_t element, uint32_t size_bytes) {
  for (size_t at = 0; at < out.size(); at += size_bytes)
    std::memcpy(out.data() + at, &element, size_bytes);
}

}  // namespace

// The bits of the constant that all elements of the node equal, as far as views and casts show it.
std::optional<uint64_t> Session::constant_value(Id node) {
  std::vector<DType> casts;
  Id id = node;
  for (; repeats_or_reorders(graph_[id].op) || graph_[id].op == Op::Cast;
       id = graph_.sources(id)[0])
    if (graph_[id].op == Op::Cast) casts.push_back(graph_[id].dtype);
  if (graph_[id].op != Op::Const) return std::nullopt;
  DType dtype = graph_[id].dtype;
  uint64_t bits = graph_[id].arg;
  if (casts.empty()) casts.push_back(strong(dtype));
  for (auto to = casts.rbegin(); to != casts.rend(); dtype = *to++)
    bits = cast_bits(bits, dtype, *to);
  return bits;
}

std::shared_ptr<Value> Session::readable_value(TensorState& state) {
  realize(state);
  if (is_on_mesh(state.node)) return readable_parts(state.node);
  const auto has_value = [&](Id id) {
    return state_->values.find(id) && is_stored(id, state.device);
  };
  Id base = state.node;
  while (!has_value(base) && (graph_[base].op == Op::Reshape || graph_[base].op == Op::Detach ||
                              graph_[base].op == Op::Bounded || graph_[base].op == Op::Function))
    base = graph_.sources(base)[0];
  if (has_value(base)) return state_->values.share(base);
  const Id root = graph_.add(Op::Contiguous, graph_[base].dtype, {base});
  if (!has_value(root)) {
    const uint32_t device = state.device == 0 ? default_device() : state.device;
    const std::vector<int64_t> sizes(shape(base).begin(), shape(base).end());
    ValuePtr part =
        leading_source(graph_, base) != base ? copied_part(*this, base, sizes, device) : nullptr;
    state_->values.set(root, part ? std::move(part) : compute(std::span(&root, 1), device)[0]);
    state_->maybe_garbage = state_->maybe_unreached_value = true;  // the value has no holder
  }
  return state_->values.share(root);
}

// Waits for the device without the session's lock; Source shares ownership of the buffer, so that
// its contents stay unchanged.
void Session::read(TensorState& state, std::span<std::byte> out) {
  if (const StatePtr whole = on_one_device(state)) return read(*whole, out);
  const Source source = read_or_find_source(state, out);
  if (source.pending_checks) source.pending_checks->require_within();
  if (source.buffer) source.buffer->copy_out(out.data(), out.size());
}

// Returns the source for `out`; empty if `out` is already filled.
Session::Source Session::read_or_find_source(TensorState& state, std::span<std::byte> out) {
  const Guard guard(mutex_);
  safe_point();
  const DType dtype = strong(graph_[state.node].dtype);
  const uint64_t needed = static_cast<uint64_t>(element_count(shape(state.node))) * size_of(dtype);
  require(out.size() == needed, "[read] the value takes {} bytes, {} were given", needed,
          out.size());
  if (needed == 0) return {};
  if (const auto constant = constant_value(state.node)) {
    fill(out, storage_bits(*constant, dtype), size_of(dtype));
    return {};
  }
  CallObserver::note_read();
  ++state_->values_read;
  const auto value = readable_value(state);
  require_there(*value);
  if (!value->buffer) std::memcpy(out.data(), value->host.data(), needed);
  return {value->buffer, value->pending_checks};
}

std::optional<std::vector<std::byte>> Session::peek(const TensorState& state) {
  const Guard guard(mutex_);
  const DType dtype = strong(graph_[state.node].dtype);
  const size_t size_bytes = static_cast<size_t>(element_count(shape(state.node))) * size_of(dtype);
  if (const auto constant = constant_value(state.node)) {
    std::vector<std::byte> bytes(size_bytes);
    fill(bytes, storage_bits(*constant, dtype), size_of(dtype));
    return bytes;
  }
  std::vector<DType> casts;  // between integers
  Id base = state.node;
  for (; shows_the_same_elements(graph_[base].op) || is_integer_cast(graph_, base) ||
         graph_[base].op == Op::Shard || graph_[base].op == Op::Copy;
       base = graph_.sources(base)[0])
    if (graph_[base].op == Op::Cast) casts.push_back(graph_[base].dtype);
  const Value* value = state_->values.find(base);
  const uint64_t count = size_bytes / size_of(dtype);
  if (value == nullptr) return std::nullopt;
  std::span<const std::byte> host = value->host;
  int32_t size = 0;  // of an axis, which the host still knows
  if (value->buffer) {
    const auto known =
        value->size && value->dtype == DType::I32 ? value->size->known() : std::nullopt;
    if (!known) return std::nullopt;
    size = static_cast<int32_t>(known->number);
    host = std::as_bytes(std::span(&size, 1));
  }
  if (host.size() != count * size_of(value->dtype)) return std::nullopt;
  if (casts.empty()) return std::vector<std::byte>(host.begin(), host.end());
  std::ranges::reverse(casts);
  return cast_elements(host, value->dtype, casts);
}

std::vector<int64_t> Session::counted_shape(TensorState& state) {
  std::vector<int64_t> sizes;
  std::vector<StatePtr> counts;  // by axis
  std::vector<int64_t> least;
  {
    const Guard guard(mutex_);
    const auto all = shape(state.node);
    sizes.assign(all.begin(), all.end());
    if (!is_counted(state.node)) return sizes;
    for (const Extent& e : (*extents_)[state.node]) {
      counts.push_back(e.is_counted() ? make(e.count, state.device) : nullptr);
      least.push_back(e.least);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!counts[i]) continue;
    const int64_t count = item_int(*counts[i]);
    require(count >= least[i] && count <= sizes[i],
            "[read] axis {} of a tensor of shape ({}) has a variable size, which is {}: it lies "
            "outside of {} to {}",
            i, fmt::join(sizes, ", "), count, least[i], sizes[i]);
    sizes[i] = count;
  }
  return sizes;
}

std::pair<uint64_t, DType> Session::read_element(TensorState& state) {
  DType dtype;
  {
    const Guard guard(mutex_);
    const int64_t count = element_count(shape(state.node));
    require(count == 1, "[item] the tensor has {} elements; only a tensor with one has an item",
            count);
    dtype = strong(graph_[state.node].dtype);
  }
  uint64_t stored = 0;
  read(state, std::as_writable_bytes(std::span(&stored, 1)).first(size_of(dtype)));
  return {constant_bits(stored, dtype), dtype};
}

double Session::item(TensorState& state) {
  const auto [bits, dtype] = read_element(state);
  if (is_float(dtype)) return std::bit_cast<double>(bits);
  return dtype == DType::U64 ? static_cast<double>(bits)
                             : static_cast<double>(static_cast<int64_t>(bits));
}

int64_t Session::item_int(TensorState& state) {
  const auto [bits, dtype] = read_element(state);
  return is_float(dtype) ? float_to_int(std::bit_cast<double>(bits), DType::I64)
                         : static_cast<int64_t>(bits);
}

}  // namespace plugrad::engine
