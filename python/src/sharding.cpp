// Sharded tensors: meshes, specs, and the methods of Tensor that Python has in a form of its own.
#include "plugrad/sharding.h"

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "modules/modules.h"
#include "place.h"
#include "spec_argument.h"

namespace plugrad::python {

namespace {

using MeshAxes = std::vector<Mesh::Axis>;

[[noreturn]] void refuse_axes(const std::string& message) {
  throw Error(ErrorKind::User, message, ErrorReason::Type);
}

std::string shown(nb::handle object) {
  return nb::cast<std::string>(nb::repr(object));
}

/// {"data": 2, "model": 4}, or a list of pairs. Errors: User (TypeError) for other objects.
MeshAxes mesh_axes_of(nb::handle object) {
  const auto refuse_object = [&] {
    refuse_axes(
        "[Mesh] the axes are a dict of names and sizes, as {\"data\": 2}, or a list of pairs, "
        "not " +
        shown(object));
  };
  MeshAxes axes;
  const nb::object items =
      nb::hasattr(object, "items") ? nb::object(object.attr("items")()) : nb::borrow(object);
  if (PyUnicode_Check(items.ptr()) || !nb::isinstance<nb::iterable>(items)) refuse_object();
  for (const nb::handle item : items) {
    Mesh::Axis axis;
    if (!nb::try_cast(item, axis)) refuse_object();
    axes.push_back(std::move(axis));
  }
  return axes;
}

/// None stands for the default ones. Errors: User (TypeError) for other objects.
std::vector<std::string> mesh_devices_of(nb::handle object) {
  std::vector<std::string> devices;
  if (object.is_none()) return devices;
  if (PyUnicode_Check(object.ptr()) || !nb::try_cast(object, devices))
    refuse_axes("[Mesh] devices is a list with the name of a device for each position, not " +
                shown(object));
  return devices;
}

nb::dict dict_of_axes(const Mesh& mesh) {
  nb::dict axes;
  for (const auto& [name, size] : mesh.axes()) axes[nb::str(name.c_str())] = size;
  return axes;
}

void bind_mesh(nb::module_& module) {
  nb::class_<Mesh> made(module, "Mesh", doc("Mesh"));
  made.def(
      "__init__",
      [](Mesh* self, nb::handle axes, nb::handle devices,
         const std::optional<std::vector<int64_t>>& ranks) {
        const Place place;
        new (self) Mesh(mesh_axes_of(axes), mesh_devices_of(devices),
                        ranks.value_or(std::vector<int64_t>()));
      },
      "axes"_a, "devices"_a = nb::none(), "ranks"_a = nb::none(),
      nb::sig("def __init__(self, axes: Mapping[str, int] | Sequence[tuple[str, int]], devices: "
              "Sequence[str] | None = None, ranks: Sequence[int] | None = None) -> None"),
      doc("Mesh::__init__"));
  made.def_prop_ro("axes", dict_of_axes, nb::sig("def axes(self, /) -> dict[str, int]"),
                   "The sizes of the axes by name, in their order.");
  made.def(
      "size",
      [](const Mesh& self, const std::optional<std::string>& axis) {
        return axis ? self.size(*axis) : self.size();
      },
      "axis"_a = nb::none(),
      "The number of positions, along one axis if one is named. Errors: UserError for an axis that "
      "the mesh does not have.");
  made.def_prop_ro("device", &Mesh::device, doc("Mesh::device"));
  made.def_prop_ro("devices", &Mesh::devices, nb::sig("def devices(self, /) -> list[str]"),
                   doc("Mesh::devices"));
  made.def_prop_ro(
      "ranks", [](const Mesh& self) { return nb::list(nb::cast(self.ranks())); },
      nb::sig("def ranks(self, /) -> list[int]"), doc("Mesh::ranks"));
  made.def(
      "__eq__", [](const Mesh& self, const Mesh& other) { return self == other; },
      "other"_a.noconvert(), nb::is_operator(),
      nb::sig("def __eq__(self, other: object, /) -> bool"));
  made.def("__hash__", [](const Mesh& self) { return nb::hash(nb::cast(self.device())); });
  made.def("__repr__", &Mesh::device);
  const auto same = [](nb::handle self) { return nb::borrow(self); };  // a mesh never changes
  made.def("__copy__", same, nb::sig("def __copy__(self) -> Mesh"));
  made.def(
      "__deepcopy__", [same](nb::handle self, nb::handle) { return same(self); }, "memo"_a,
      nb::sig("def __deepcopy__(self, memo: dict[Any, Any]) -> Mesh"));
  made.def(
      "__reduce__",
      [](const Mesh& self) {
        const nb::object devices = self.devices().empty() ? nb::none() : nb::cast(self.devices());
        return nb::make_tuple(nb::type<Mesh>(),
                              nb::make_tuple(dict_of_axes(self), devices, self.ranks()));
      },
      nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
}

nb::tuple tuple_of_dims(const ShardSpec& spec) {
  nb::list dims;
  for (const std::string& dim : spec.dims())
    dims.append(dim.empty() ? nb::none() : nb::object(nb::str(dim.c_str())));
  return nb::tuple(dims);
}

void bind_spec(nb::module_& module) {
  nb::class_<ShardSpec> made(module, "ShardSpec", doc("ShardSpec"));
  made.def(
      "__init__",
      [](ShardSpec* self, const nb::args& dims, const std::optional<std::string>& partial_sum) {
        new (self)
            ShardSpec(ShardSpec(dims_of_object(dims)).with_partial_sum(partial_sum.value_or("")));
      },
      "dims"_a, "partial_sum"_a = nb::none(),
      nb::sig("def __init__(self, *dims: str | None, partial_sum: str | None = None) -> None"),
      "dims: for each dimension the axes that cut it, or None\n"
      "partial_sum: the axes along which every device has a term of the sum");
  made.def_prop_ro("dims", tuple_of_dims, nb::sig("def dims(self, /) -> tuple[str | None, ...]"),
                   "For each dimension the axes that cut it, or None.");
  made.def_prop_ro(
      "partial_sum",
      [](const ShardSpec& self) {
        return self.partial_sum().empty() ? std::nullopt : std::optional(self.partial_sum());
      },
      "The axes along which every device has a term of the sum, or None.");
  made.def(
      "__eq__", [](const ShardSpec& self, const ShardSpec& other) { return self == other; },
      "other"_a.noconvert(), nb::is_operator(),
      nb::sig("def __eq__(self, other: object, /) -> bool"));
  made.def("__hash__", [](const ShardSpec& self) { return nb::hash(nb::cast(self.to_string())); });
  made.def("__repr__", &ShardSpec::to_string);
  made.def(
      "__getstate__",
      [](const ShardSpec& self) { return nb::make_tuple(self.dims(), self.partial_sum()); },
      nb::sig("def __getstate__(self) -> tuple[list[str], str]"));
  made.def("__setstate__",
           [](ShardSpec& self, const std::pair<std::vector<std::string>, std::string>& state) {
             new (&self) ShardSpec(ShardSpec(state.first).with_partial_sum(state.second));
           });
}

/// An item of a spec that is neither a str nor None.
[[noreturn]] void refuse_dim(nb::handle dim) {
  std::string axes;
  const bool is_list = PyTuple_Check(dim.ptr()) || PyList_Check(dim.ptr());
  if (is_list)
    for (const nb::handle axis : dim)
      if (PyUnicode_Check(axis.ptr()))
        axes += (axes.empty() ? "" : "+") + nb::cast<std::string>(axis);
  refuse_axes("[spec] a dimension of a spec is the name of axes, as \"data\", or None, not " +
              shown(dim) +
              (axes.empty() ? "" : "; axes that cut one dimension together are \"" + axes + "\""));
}

}  // namespace

std::vector<std::string> dims_of_object(nb::handle object) {
  std::vector<std::string> dims;
  for (const nb::handle dim : object) {
    if (!dim.is_none() && !PyUnicode_Check(dim.ptr())) refuse_dim(dim);
    dims.push_back(dim.is_none() ? std::string() : nb::cast<std::string>(dim));
  }
  return dims;
}

std::optional<SpecArgument> spec_of_object(nb::handle object) {
  const ShardSpec* known = nullptr;
  if (object.is_none()) return SpecArgument();
  if (nb::try_cast(object, known, false) && known != nullptr) return SpecArgument{*known};
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr()))
    refuse_axes("[spec] a spec is a tuple with an entry for each dimension, not " + shown(object) +
                (PyUnicode_Check(object.ptr()) ? "; did you mean (" + shown(object) + ",)?" : ""));
  return SpecArgument{ShardSpec(dims_of_object(object))};
}

void bind_sharding_methods(nb::class_<Tensor>& tensor) {
  tensor.def(
      "shard",
      [](const Tensor& self, const Mesh& mesh, const SpecArgument& spec) {
        const Place place;
        return self.shard(mesh, spec.spec);
      },
      "mesh"_a, "spec"_a = nb::none(),
      nb::sig("def shard(self, mesh: Mesh, spec: SpecLike | None = None) -> Tensor"),
      doc("Tensor::shard"));
  tensor.def(
      "unshard",
      [](const Tensor& self, const DeviceLike& device) {
        const Place place;
        return self.unshard(device.name);
      },
      "device"_a = nb::none(), nb::sig("def unshard(self, device: str | None = None) -> Tensor"),
      doc("Tensor::unshard"));
  tensor.def_prop_ro("is_sharded", &Tensor::is_sharded, "Whether the tensor is on a mesh.");
  tensor.def_prop_ro("shard_spec", &Tensor::shard_spec,
                     nb::sig("def shard_spec(self, /) -> ShardSpec"), doc("Tensor::shard_spec"));
  tensor.def_prop_ro("mesh", &Tensor::mesh, nb::sig("def mesh(self, /) -> Mesh"),
                     doc("Tensor::mesh"));
  tensor.def(
      "shards",
      [](const Tensor& self) {
        const Place place;
        const Released released;
        return self.shards();
      },
      nb::sig("def shards(self) -> list[Tensor]"), doc("Tensor::shards"));
}

void bind_sharding(nb::module_& module) {
  bind_mesh(module);
  bind_spec(module);
  module.def(
      "describe_sharding",
      [](const Tensor& tensor) {
        const Place place;
        const Released released;
        return describe_sharding(tensor);
      },
      "tensor"_a,
      "Lists the operations that compute the tensor, sources first, each with its shape and spec. "
      "Before an operation stand the collectives that move its sources, with the bytes of the "
      "whole value. Runs nothing; empty if the tensor is on no mesh. "
      "For example, \"all-reduce %12 along model: 128 bytes\" stands before "
      "\"%13 Exp2 f32 (4, 8) [data, -]\".");
  module.def(
      "from_shards",
      [](const Mesh& mesh, const SpecArgument& spec, const std::vector<int64_t>& shape,
         const TensorList& parts) {
        const Place place;
        const std::vector<Tensor> tensors = parts.get();
        const Released released;
        return from_shards(mesh, spec.spec, shape, tensors);
      },
      "mesh"_a, "spec"_a.none(), "shape"_a, "parts"_a,
      nb::sig("def from_shards(mesh: Mesh, spec: SpecLike | None, shape: ShapeLike, parts: "
              "Sequence[Tensor]) -> Tensor"),
      doc("from_shards"));
}

}  // namespace plugrad::python
