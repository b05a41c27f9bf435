#include "engine/views/leading_parts.h"

#include <algorithm>

#include "engine/recording/call_observer.h"
#include "engine/session_state.h"
#include "engine/views.h"

namespace plugrad::engine {
namespace {

using Sizes = std::span<const int64_t>;

// Of one row each; a kernel or the host is quicker from there on.
constexpr int64_t kMostCopies = 256;

// shape() may move what it gave before.
std::vector<int64_t> copy_of(Sizes sizes) {
  return {sizes.begin(), sizes.end()};
}

}  // namespace

bool copy_box(runtime::Buffer& to, Sizes to_shape, const runtime::Buffer& from, Sizes from_shape,
              Sizes part, uint64_t element_bytes, int64_t most_copies) {
  size_t axes = part.size();  // those before the last that differs; later ones are one row
  uint64_t to_row = element_bytes, from_row = element_bytes, row = element_bytes;
  for (bool is_whole = true; axes > 0 && is_whole;) {
    --axes;
    is_whole = to_shape[axes] == part[axes] && from_shape[axes] == part[axes];
    to_row *= static_cast<uint64_t>(to_shape[axes]);
    from_row *= static_cast<uint64_t>(from_shape[axes]);
    row *= static_cast<uint64_t>(part[axes]);
  }
  const int64_t rows = element_count(part.first(axes));
  if (rows > most_copies) return false;
  for (int64_t number = 0; row > 0 && number < rows; ++number) {
    uint64_t to_at = 0, from_at = 0, to_step = 1, from_step = 1;
    int64_t left = number;
    for (size_t axis = axes; axis-- > 0; left /= part[axis]) {
      const auto at = static_cast<uint64_t>(left % part[axis]);
      to_at += at * to_step;
      from_at += at * from_step;
      to_step *= static_cast<uint64_t>(to_shape[axis]);
      from_step *= static_cast<uint64_t>(from_shape[axis]);
    }
    runtime::copy(to, to_at * to_row, from, from_at * from_row, row);
  }
  return true;
}

Id leading_source(const Graph& graph, Id node) {
  if (graph[node].op != Op::Shrink) return node;
  const auto list = graph.arg_list(node);
  for (size_t i = 0; i < list.size(); i += 2)
    if (list[i] != 0) return node;
  return graph.sources(node)[0];
}

ValuePtr copied_part(Session& session, Id node, Sizes room, uint32_t device) {
  const Id source = leading_source(session.graph(), node);
  ValueTable& values = session.state().values;
  const ValuePtr from = values.find(source) ? values.share(source) : nullptr;
  if (!from || !from->buffer || from->is_gone || CallObserver::active()) return nullptr;
  if (device != 0 && device != from->device) return nullptr;
  const std::vector<int64_t> part = copy_of(session.shape(node)),
                             whole = copy_of(session.shape(source));
  const uint64_t element_bytes = size_of(from->dtype);
  auto made = std::make_shared<Value>();
  made->dtype = from->dtype;
  made->device = from->device;
  made->size_bytes = static_cast<uint64_t>(element_count(room)) * element_bytes;
  made->pending_checks = from->pending_checks;
  if (made->size_bytes == 0) return nullptr;
  made->buffer = from->buffer->device().allocate(made->size_bytes);
  if (!copy_box(*made->buffer, room, *from->buffer, whole, part, element_bytes, kMostCopies))
    return nullptr;
  session.state().note_new_value(made->size_bytes);
  return made;
}

std::optional<Id> in_room(Session& session, TensorState& state, Sizes room) {
  session.realize(state);
  const std::lock_guard guard(session.mutex());
  if (session.mesh(session.devices()[state.node])) return {};
  ValueTable& values = session.state().values;
  const Id source = leading_source(session.graph(), state.node);
  if (source != state.node && std::ranges::equal(session.shape(source), room) &&
      values.find(source))
    return source;
  ValuePtr made = copied_part(session, state.node, room, state.device);
  if (!made) return {};
  const Id node = session.add_buffer(session.graph(), room, made->dtype, made->device);
  values.set(node, std::move(made));
  return node;
}

}  // namespace plugrad::engine
