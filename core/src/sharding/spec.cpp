#include "sharding/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/text/printer.h"

namespace plugrad::sharding {
std::string names_of(const Mesh& mesh, AxisSet along) {
  std::string text;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if ((along >> axis & 1) && !mesh.axes[axis].empty())
      text += (text.empty() ? "" : "+") + mesh.axes[axis];
  return text.empty() ? "-" : text;
}

AxisSet Spec::cut() const {
  AxisSet all = 0;
  for (const AxisSet along : dims) all |= along;
  return all;
}

bool Spec::is_replicated() const {
  return partial == 0 && cut() == 0;
}

Part part_of(const Mesh& mesh, AxisSet along, int64_t size, uint32_t position) {
  if (along == 0) return {0, size};
  const int64_t count = mesh.count(along), index = mesh.index(position, along);
  const auto begin = [&](int64_t i) {  // size * i / count without overflow
    return size / count * i + size % count * i / count;
  };
  return {begin(index), begin(index + 1)};
}

std::vector<int64_t> local_shape(const Mesh& mesh, const Spec& spec, std::span<const int64_t> shape,
                                 uint32_t position) {
  std::vector<int64_t> local(shape.begin(), shape.end());
  for (size_t i = 0; i < local.size(); ++i)
    local[i] = part_of(mesh, spec.dims[i], shape[i], position).size();
  return local;
}

bool is_even(const Mesh& mesh, AxisSet along, int64_t size) {
  return size % mesh.count(along) == 0;
}

std::string to_string(const Mesh& mesh, const Spec& spec) {
  std::vector<std::string> dims;
  for (const AxisSet along : spec.dims) dims.push_back(names_of(mesh, along));
  std::string text = fmt::format("[{}]", fmt::join(dims, ", "));
  if (spec.partial != 0)
    text +=
        fmt::format(" partial {}({})", printed_name(spec.reduction), names_of(mesh, spec.partial));
  return text;
}

std::string to_string(const Mesh& mesh) {
  std::string text;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if (!mesh.axes[axis].empty())
      text += fmt::format("{}{}={}", axis == 0 ? "" : " ", mesh.axes[axis], mesh.sizes[axis]);
  return text;
}

std::vector<int64_t> shard_arg(const Mesh& mesh, const Spec& spec) {
  std::vector<int64_t> arg = {mesh.device, spec.partial, static_cast<int64_t>(spec.reduction)};
  arg.insert(arg.end(), spec.dims.begin(), spec.dims.end());
  return arg;
}

Spec spec_of_arg(std::span<const int64_t> arg) {
  Spec spec{{}, static_cast<AxisSet>(arg[1]), static_cast<Op>(arg[2])};
  for (const int64_t along : arg.subspan(3)) spec.dims.push_back(static_cast<AxisSet>(along));
  return spec;
}

}  // namespace plugrad::sharding
