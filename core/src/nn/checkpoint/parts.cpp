#include "nn/checkpoint/parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "nn/checkpoint/in_all_ranks.h"
#include "sharding/spec.h"
#include "tensor/record.h"

namespace plugrad::nn {
namespace {

io::Box whole(const Shape& shape) {
  return {std::vector<int64_t>(shape.size()), shape};
}

/// "weight" of all elements, "weight[0:4, 2:6]" of a part.
std::string key_of(const std::string& name, const Shape& shape, const io::Box& box) {
  if (box == whole(shape)) return name;
  std::vector<std::string> ranges;
  for (size_t d = 0; d < box.shape.size(); ++d)
    ranges.push_back(fmt::format("{}:{}", box.offset[d], box.offset[d] + box.shape[d]));
  return fmt::format("{}[{}]", name, fmt::join(ranges, ", "));
}

}  // namespace

std::vector<PlacedBox> placed_boxes(const Tensor& tensor) {
  const Shape shape = tensor.bound_shape();
  std::vector<PlacedBox> placed;
  if (!tensor.is_sharded()) {
    for (size_t rank = 0; rank < this_rank().count; ++rank)
      placed.push_back({whole(shape), rank, 0, tensor.device()});
    return placed;
  }
  tensor::Recorder r("shards");
  const Id node = r.use(tensor);
  const sharding::Mesh& mesh = *r.session().mesh(r.session().devices()[node]);
  const sharding::Spec spec = r.session().spec(node);
  std::map<size_t, size_t> shards;  // so far, by rank
  for (uint32_t position = 0; position < mesh.size(); ++position) {
    if (mesh.index(position, mesh.fine_axis()) != 0) continue;  // of the same device
    const auto& [rank, device] = mesh.places[position];
    PlacedBox& at = placed.emplace_back(PlacedBox{{}, rank, shards[rank]++, {}});
    if (mesh.is_here(position)) at.device = r.session().device_name(device);
    for (size_t d = 0; d < shape.size(); ++d) {
      const sharding::Part part =
          sharding::part_of(mesh, spec.dims[d] & ~mesh.fine_axis(), shape[d], position);
      at.box.offset.push_back(part.begin);
      at.box.shape.push_back(part.size());
    }
  }
  return placed;
}

std::vector<PlannedTensor> plan_save(const StateDict& state) {
  std::vector<PlannedTensor> plan;
  std::vector<uint64_t> bytes(this_rank().count);  // by rank
  std::set<std::string> names;
  for (const auto& [name, tensor] : state) {
    require(names.insert(name).second,
            "[nn::save_sharded] two tensors are named \"{}\"; give each a name of its own", name);
    PlannedTensor& planned =
        plan.emplace_back(PlannedTensor{name, tensor, tensor.bound_shape(), {}});
    std::map<io::Box, PlacedBox> chosen;
    for (PlacedBox& placed : placed_boxes(tensor)) {
      if (placed.box.elements() == 0) continue;
      const auto [at, is_new] = chosen.try_emplace(placed.box, placed);
      if (!is_new && bytes[placed.rank] < bytes[at->second.rank]) at->second = placed;
    }
    for (const auto& [box, placed] : chosen) {
      bytes[placed.rank] += static_cast<uint64_t>(box.elements()) * size_of(tensor.dtype());
      planned.parts.push_back({placed, key_of(name, planned.shape, box)});
    }
  }
  return plan;
}

}  // namespace plugrad::nn
