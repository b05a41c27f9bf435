/// Sharded tensors: one tensor whose parts lie on several devices, of one process or of many.
///   Mesh mesh({{"data", 2}, {"model", 2}}, {"CPU", "CPU", "OPENCL", "OPENCL"});
///   Tensor x = Tensor::rand({8, 4}).shard(mesh, {"data"});       // rows over axis data
///   Tensor w = Tensor::rand({4, 6}).shard(mesh, {"", "model"});  // columns over axis model
///   Tensor y = x.matmul(w);                                      // y.shard_spec(): [data, model]
///   y.sum().item<float>();
/// Tensor functions work on them as on others: a table of rules (docs/sharding.md) says how the
/// result lies on the mesh, and data move between devices where the table asks for it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugrad/export.h"
#include "plugrad/tensor.h"

namespace plugrad {

namespace detail {
struct MeshAccess;
}

/// Devices in a grid of named axes. Copies denote the same mesh; equal meshes are the same.
class PLUGRAD_API Mesh {
 public:
  using Axis = std::pair<std::string, int64_t>;
  /// `devices`: one for each position, row-major over the axes; a device may have several. In a
  /// program of n processes (distributed.h) each has an n-th of the positions, in the order of the
  /// ranks, and names the devices of its own. Without `devices`: those of the default device's
  /// plugin. With `ranks`, ascending, the positions are those of these processes alone; all others
  /// make the mesh, too, with the same ranks, and name no devices. A value on it is read by all
  /// processes together, or by none. Errors: User for no axes, an axis without a name or named
  /// twice, sizes below 1, ranks that do not exist, a number of positions that the processes do not
  /// divide, and another number of devices.
  explicit Mesh(std::vector<Axis> axes, std::vector<std::string> devices = {},
                std::vector<int64_t> ranks = {});

  const std::vector<Axis>& axes() const { return axes_; }
  int64_t size() const;                       ///< the number of positions
  int64_t size(std::string_view axis) const;  ///< Errors: User for an axis that it has not
  /// Of the positions of this process, in their order; none if it has no position.
  std::vector<std::string> devices() const;
  /// The processes that have positions, ascending.
  std::vector<int64_t> ranks() const;
  /// "mesh data=2 model=2 (CPU, CPU, OPENCL, OPENCL)": names it as a device, e.g. in Tensor::to.
  std::string device() const;
  friend bool operator==(const Mesh& a, const Mesh& b) { return a.number_ == b.number_; }

 private:
  friend struct detail::MeshAccess;
  Mesh(uint32_t number, std::vector<Axis> axes) : axes_(std::move(axes)), number_(number) {}
  std::vector<Axis> axes_;
  uint32_t number_ = 0;
};

/// How a tensor lies on a mesh: for each dimension the axes that cut it, as "data" or "data+model",
/// or "" for none; dimensions at the end may be left out. Parts differ in size by at most 1.
class PLUGRAD_API ShardSpec {
 public:
  ShardSpec() = default;  ///< every device has all of it
  ShardSpec(std::initializer_list<std::string_view> dims) : dims_(dims.begin(), dims.end()) {}
  explicit ShardSpec(std::vector<std::string> dims) : dims_(std::move(dims)) {}
  /// The devices along these axes ("data+model") each have a term, of which the value is the sum.
  ShardSpec with_partial_sum(std::string axes) const;

  const std::vector<std::string>& dims() const { return dims_; }
  const std::string& partial_sum() const { return partial_sum_; }
  /// "[data, -] partial add(model)"
  std::string to_string() const;
  bool operator==(const ShardSpec&) const = default;

 private:
  std::vector<std::string> dims_;
  std::string partial_sum_;
};

/// A tensor of this shape, of which `parts` are the parts on the devices of this process, in the
/// order of the mesh, each on its device. Errors: User for other shapes, dtypes or numbers of parts.
PLUGRAD_API Tensor from_shards(const Mesh& mesh, const ShardSpec& spec, const Shape& shape,
                               const std::vector<Tensor>& parts);

/// Lists the operations that compute the tensor, sources first, each with its shape and spec. Before
/// an operation stand the collectives that move its sources, with the bytes of the whole value.
/// Runs nothing; empty if the tensor is on no mesh.
///     all-reduce %12 along model: 128 bytes
///   %13 exp2 f32 (4, 8) [data, -]
PLUGRAD_API std::string describe_sharding(const Tensor& tensor);

}  // namespace plugrad
