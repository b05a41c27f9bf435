// The public functions of sharded tensors.
#include "plugrad/sharding.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/launch/launcher.h"
#include "base/settings.h"
#include "distributed/backend.h"
#include "engine/recording/recorded_functions.h"
#include "plugrad/functional.h"
#include "sharding/lowering.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

namespace detail {
struct MeshAccess {
  static uint32_t number(const Mesh& mesh) { return mesh.number_; }
  static Mesh mesh_of(const sharding::Mesh& known) {
    std::vector<Mesh::Axis> axes;
    for (size_t i = 0; i < known.axes.size(); ++i)
      if (!known.axes[i].empty()) axes.emplace_back(known.axes[i], known.sizes[i]);
    return Mesh(known.device, std::move(axes));
  }
};
}  // namespace detail

namespace {

using tensor::Recorder;

constexpr size_t kMostAxes = 32;  // bits of an AxisSet

const sharding::Mesh& mesh_of(const Mesh& mesh) {
  return *engine::Session::current().mesh(detail::MeshAccess::number(mesh));
}

void check_axes(const std::vector<Mesh::Axis>& axes) {
  require(!axes.empty(),
          "[Mesh] a mesh has at least one axis, with a name such as data and a size");
  require(axes.size() <= kMostAxes, "[Mesh] {} axes are given, a mesh has at most {}", axes.size(),
          kMostAxes);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto& [name, size] = axes[i];
    require(!name.empty() && name != "-" && name.find_first_of("+, ()[]=") == std::string::npos,
            "[Mesh] axis {} is named \"{}\"; a name is a word such as data", i, name);
    require(size >= 1, "[Mesh] axis {} has size {}; sizes are at least 1", name, size);
    require(std::ranges::count(axes, name, &Mesh::Axis::first) == 1,
            "[Mesh] two axes are named {}; give each its own name", name);
  }
}

/// Ends errors of a process that a launcher started with others and that counts as alone.
std::string hint_of_launch() {
  if (distributed::backend() != nullptr) return "";
  const Launch launch = launch_of_process();
  if (launch.launcher.empty() || launch.size == 1) return "";
  return fmt::format(
      "; {} started this process, which has not called distributed::init(): call it at the "
      "program's start",
      launch.launcher);
}

/// All ranks if none are given.
void check_ranks(std::vector<int64_t>& ranks, int64_t all) {
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(all));
    std::iota(ranks.begin(), ranks.end(), int64_t{0});
  }
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] < 0 || ranks[i] >= all || (i > 0 && ranks[i - 1] >= ranks[i]))
      fail(ErrorKind::User,
           "[Mesh] the ranks are {}; they ascend and are below {}, the number of processes{}",
           fmt::join(ranks, ", "), all, hint_of_launch());
}

/// Of the `count` positions of this process.
std::vector<std::string> default_devices(int64_t count, int64_t processes) {
  engine::Session& session = engine::Session::current();
  const std::string first = session.device_name(0);
  std::vector<std::string> devices = {first};
  for (int64_t i = 1; i < count; ++i) {
    const std::string name = fmt::format("{}:{}", first, i);
    try {
      session.device_number(name);
    } catch (const Error&) {
      fail(ErrorKind::User,
           "[Mesh] the axes have {} positions{}, but {} has {} device{}. Name the device of each "
           "position{}, which may repeat: Mesh(axes, devices){}{}",
           count * processes,
           processes == 1 ? "" : fmt::format(", {} in each of {} processes", count, processes),
           first, i, i == 1 ? "" : "s", processes == 1 ? "" : " of this process",
           processes == 1 ? "" : fmt::format("; or give the axes {} positions", i * processes),
           hint_of_launch());
    }
    devices.push_back(name);
  }
  return devices;
}

/// The axes that "data+model" names. Errors: User.
sharding::AxisSet axes_named(std::string_view function, const sharding::Mesh& mesh,
                             std::string_view text) {
  sharding::AxisSet axes = 0;
  if (text.empty() || text == "-") return axes;
  while (true) {
    const std::string_view name = text.substr(0, text.find('+'));
    const auto at = std::ranges::find(mesh.axes, name) - mesh.axes.begin();
    require(static_cast<size_t>(at) < mesh.axes.size(),
            "[{}] the mesh {} has no axis \"{}\"; its axes are {}", function,
            sharding::to_string(mesh), name, fmt::join(mesh.axes, ", "));
    const sharding::AxisSet bit = sharding::AxisSet{1} << at;
    require((axes & bit) == 0, "[{}] axis {} is named twice for one dimension", function, name);
    require((axes & ~mesh.fine_axis()) < bit,
            "[{}] axes of one dimension are named in the order of the mesh: {}", function,
            fmt::join(mesh.axes, ", "));
    axes |= bit | (at == 0 ? mesh.fine_axis() : 0);
    if (name.size() == text.size()) return axes;
    text.remove_prefix(name.size() + 1);
  }
}

sharding::Spec spec_of(std::string_view function, const sharding::Mesh& mesh,
                       const ShardSpec& given, const Shape& shape) {
  require(given.dims().size() <= shape.size(),
          "[{}] the spec {} has {} dimensions, the tensor of shape {} has {}", function,
          given.to_string(), given.dims().size(), tensor::lazy_text(shape), shape.size());
  sharding::Spec spec = sharding::Spec::replicated(shape.size());
  sharding::AxisSet used = 0;
  const auto take = [&](std::string_view text) {
    const sharding::AxisSet axes = axes_named(function, mesh, text);
    require((axes & used) == 0, "[{}] the spec {} names an axis of the mesh twice", function,
            given.to_string());
    used |= axes;
    return axes;
  };
  for (size_t d = 0; d < given.dims().size(); ++d) spec.dims[d] = take(given.dims()[d]);
  spec.partial = take(given.partial_sum());
  return spec;
}

// With PLUGRAD_DETERMINISTIC=1, values are computed in this many parts along the first axis, however
// many devices there are, so that the same kernels run and sums are added in the same order.
constexpr int64_t kFixedParts = 8;

/// Cuts the first axis further, within each device, if that gives kFixedParts parts.
void add_fine_axis(sharding::Mesh& mesh) {
  if (!settings().deterministic || mesh.sizes[0] >= kFixedParts ||
      kFixedParts % mesh.sizes[0] != 0 || mesh.axes.size() == kMostAxes)
    return;
  mesh.axes.emplace_back();  // the last: the parts of a device follow each other, of any spec
  mesh.sizes.push_back(kFixedParts / mesh.sizes[0]);
}

/// The positions of this process, as the user counts them: one a device, with one position for each
/// finer part.
std::vector<std::vector<uint32_t>> positions_here(const sharding::Mesh& mesh) {
  std::map<int64_t, std::vector<uint32_t>> found;
  for (uint32_t position = 0; position < mesh.size(); ++position)
    if (mesh.is_here(position)) found[mesh.index(position, ~mesh.fine_axis())].push_back(position);
  std::vector<std::vector<uint32_t>> positions;
  for (auto& [index, fine] : found) positions.push_back(std::move(fine));
  return positions;
}

sharding::Spec without(sharding::Spec spec, sharding::AxisSet axes) {
  for (sharding::AxisSet& along : spec.dims) along &= ~axes;
  return spec;
}

/// The dimension that an axis cuts; the rank if there is none.
size_t cut_by(const sharding::Spec& spec, sharding::AxisSet axis) {
  const auto found =
      std::ranges::find_if(spec.dims, [&](sharding::AxisSet along) { return (along & axis) != 0; });
  return static_cast<size_t>(found - spec.dims.begin());
}

/// The elements of one position: a slice of `part`, which is that of its device.
Tensor finer_part(const sharding::Mesh& mesh, const sharding::Spec& spec, const Shape& shape,
                  const Tensor& part, uint32_t position) {
  const size_t d = cut_by(spec, mesh.fine_axis());
  if (d == spec.dims.size()) return part;
  const auto whole = sharding::part_of(mesh, spec.dims[d] & ~mesh.fine_axis(), shape[d], position),
             own = sharding::part_of(mesh, spec.dims[d], shape[d], position);
  return part.slice(static_cast<int64_t>(d), Slice(own.begin - whole.begin, own.end - whole.begin));
}

/// The axes as ShardSpec has them.
std::string named(const sharding::Mesh& mesh, sharding::AxisSet axes) {
  return axes == 0 ? std::string() : sharding::names_of(mesh, axes);
}

}  // namespace

Mesh::Mesh(std::vector<Axis> axes, std::vector<std::string> devices, std::vector<int64_t> ranks)
    : axes_(std::move(axes)) {
  check_axes(axes_);
  engine::Session& session = engine::Session::current();
  const distributed::Backend* const backend = distributed::backend();
  const uint32_t rank = backend ? backend->rank() : 0, all = backend ? backend->size() : 1;
  check_ranks(ranks, all);
  const auto processes = static_cast<int64_t>(ranks.size());
  const bool is_here = std::ranges::find(ranks, int64_t{rank}) != ranks.end();
  const int64_t count = size();
  require(count % processes == 0,
          "[Mesh] the axes have {} positions, which do not divide among {} processes", count,
          processes);
  const int64_t own = count / processes;
  if (devices.empty() && is_here) devices = default_devices(own, processes);
  require(!is_here || static_cast<int64_t>(devices.size()) == own,
          "[Mesh] {} devices are given for {} positions{}, the product of the sizes of the axes{}",
          devices.size(), own, processes == 1 ? "" : " of each process",
          processes == 1 ? "" : " divided by the number of processes");
  sharding::Mesh mesh;
  mesh.rank = rank;
  mesh.processes = all;
  for (const auto& [name, axis_size] : axes_) {
    mesh.axes.push_back(name);
    mesh.sizes.push_back(axis_size);
  }
  add_fine_axis(mesh);
  mesh.places.resize(static_cast<size_t>(mesh.count(~sharding::AxisSet{0})));
  for (uint32_t place = 0; place < mesh.places.size(); ++place) {
    const int64_t position = mesh.index(place, ~mesh.fine_axis());
    const auto owner = static_cast<uint32_t>(ranks[static_cast<size_t>(position / own)]);
    uint32_t number = 0;  // of another process
    if (owner == mesh.rank) {
      const std::string& device = devices[static_cast<size_t>(position % own)];
      number = session.device_number(device);
      require(session.mesh(number) == nullptr, "[Mesh] {} is a mesh, not a device", device);
    }
    mesh.places[place] = {owner, number};
  }
  mesh.home = is_here ? mesh.places[mesh.first_here()].device : session.device_number("");
  number_ = session.mesh_number(std::move(mesh));
}

int64_t Mesh::size() const {
  int64_t count = 1;
  for (const auto& [name, size] : axes_)
    require(!__builtin_mul_overflow(count, size, &count) && count <= 1 << 20,
            "[Mesh] the mesh has more than {} positions", 1 << 20);
  return count;
}

int64_t Mesh::size(std::string_view axis) const {
  const auto at = std::ranges::find(axes_, axis, &Axis::first);
  require(at != axes_.end(), "[Mesh] there is no axis \"{}\"", axis);
  return at->second;
}

std::vector<std::string> Mesh::devices() const {
  const sharding::Mesh& on = mesh_of(*this);
  std::vector<std::string> devices;
  for (const std::vector<uint32_t>& positions : positions_here(on))
    devices.push_back(engine::Session::current().device_name(on.places[positions[0]].device));
  return devices;
}

std::vector<int64_t> Mesh::ranks() const {
  const sharding::Mesh& on = mesh_of(*this);
  std::vector<int64_t> ranks;
  for (uint32_t rank = 0; rank < on.processes; ++rank)
    if (on.first_of(rank) < on.size()) ranks.push_back(rank);
  return ranks;
}

std::string Mesh::device() const {
  return engine::Session::current().device_name(number_);
}

ShardSpec ShardSpec::with_partial_sum(std::string axes) const {
  ShardSpec spec = *this;
  spec.partial_sum_ = std::move(axes);
  return spec;
}

std::string ShardSpec::to_string() const {
  std::vector<std::string> dims = dims_;
  for (std::string& dim : dims)
    if (dim.empty()) dim += '-';
  std::string text = fmt::format("[{}]", fmt::join(dims, ", "));
  if (!partial_sum_.empty()) text += fmt::format(" partial add({})", partial_sum_);
  return text;
}

Tensor Tensor::shard(const Mesh& mesh, const ShardSpec& given) const {
  Recorder r("shard");
  const sharding::Mesh& on = mesh_of(mesh);
  Id node = r.use(*this);
  const uint32_t from = r.session().devices()[node];
  node = r.cast(node, strong(r.dtype(node)));
  if (r.session().mesh(from) != nullptr && from != on.device)
    node = r.graph().add(Op::Copy, r.dtype(node), {node}, on.device);
  const sharding::Spec spec = spec_of("shard", on, given, r.shape(node));
  const ListId arg = r.graph().list(sharding::shard_arg(on, spec));
  const Id sharded = r.graph().add(Op::Shard, r.dtype(node), {node}, arg);
  r.session().spec(sharded);   // throws where no rule leads there
  if (on.has_all_processes())  // others make tensors of a mesh, on which they have no parts, by it
    engine::RecordedFunctions::of_this_thread().add("shard", 0, r.dtype(node), r.shape(node), spec);
  engine::StatePtr state = r.session().make(sharded, on.device);
  state->recorded = engine::RecordedFunctions::of_this_thread().number();
  return tensor::tensor_of(std::move(state));
}

Tensor Tensor::shard(const Mesh& mesh) const {
  return shard(mesh, ShardSpec());
}

Tensor Tensor::unshard(std::string_view device) const {
  if (!is_sharded()) return device.empty() ? *this : to(device);
  if (!device.empty()) return to(device);
  std::string first;
  {
    Recorder r("unshard");
    const uint32_t mesh = r.session().devices()[r.use(*this)];
    first = r.session().device_name(r.session().device_of(mesh));
  }
  return to(first);
}

bool Tensor::is_sharded() const {
  Recorder r("is_sharded");
  return r.session().mesh(r.session().devices()[r.use(*this)]) != nullptr;
}

ShardSpec Tensor::shard_spec() const {
  Recorder r("shard_spec");
  const Id node = r.use(*this);
  const sharding::Mesh* on = r.session().mesh(r.session().devices()[node]);
  require(on != nullptr, "[shard_spec] the tensor is on no mesh; shard(mesh, spec) it");
  const sharding::Spec spec = r.session().spec(node);
  std::vector<std::string> dims;
  for (const sharding::AxisSet axes : spec.dims) dims.push_back(named(*on, axes));
  return ShardSpec(std::move(dims)).with_partial_sum(named(*on, spec.partial));
}

std::string describe_sharding(const Tensor& tensor) {
  Recorder r("describe_sharding");
  const Id node = r.use(tensor);
  return r.session().describe_sharding(node);
}

Mesh Tensor::mesh() const {
  Recorder r("mesh");
  const sharding::Mesh* on = r.session().mesh(r.session().devices()[r.use(*this)]);
  require(on != nullptr, "[mesh] the tensor is on no mesh; shard(mesh, spec) it");
  return detail::MeshAccess::mesh_of(*on);
}

namespace {

/// The parts of the devices of this process, of those of its positions.
std::vector<Tensor> joined_parts(const sharding::Mesh& mesh, const sharding::Spec& spec,
                                 const std::vector<Tensor>& fine) {
  std::map<uint32_t, Tensor> by_position;
  for (uint32_t position = 0; position < mesh.size(); ++position)
    if (mesh.is_here(position)) by_position.emplace(position, fine[by_position.size()]);
  const size_t d = cut_by(spec, mesh.fine_axis());
  std::vector<Tensor> parts;
  for (const std::vector<uint32_t>& positions : positions_here(mesh)) {
    std::vector<Tensor> own;
    for (const uint32_t position : positions) own.push_back(by_position.at(position));
    parts.push_back(d == spec.dims.size() ? own[0] : cat(own, static_cast<int64_t>(d)));
  }
  return parts;
}

}  // namespace

std::vector<Tensor> Tensor::shards() const {
  std::vector<Tensor> parts;
  const sharding::Mesh* on = nullptr;
  sharding::Spec spec;
  {
    Recorder r("shards");
    const Id node = r.use(*this);
    on = r.session().mesh(r.session().devices()[node]);
    require(on != nullptr, "[shards] the tensor is on no mesh; shard(mesh, spec) it");
    spec = r.session().spec(node);
    for (engine::StatePtr& state : r.session().parts_of(*tensor::state_of(*this)))
      parts.push_back(tensor::tensor_of(std::move(state)));
  }
  return on->fine_axis() == 0 ? parts : joined_parts(*on, spec, parts);
}

Tensor from_shards(const Mesh& mesh, const ShardSpec& given, const Shape& shape,
                   const std::vector<Tensor>& parts) {
  const sharding::Mesh& on = mesh_of(mesh);
  require(std::ranges::all_of(shape, [](int64_t size) { return size >= 0; }),
          "[from_shards] the shape is {}; sizes are 0 or more", to_string(shape));
  const sharding::Spec spec = spec_of("from_shards", on, given, shape);
  const auto positions = positions_here(on);
  require(!positions.empty(),
          "[from_shards] this process has no position of {}; shard() a tensor that all processes "
          "have",
          mesh.device());
  require(parts.size() == positions.size(),
          "[from_shards] {} parts are given, this process has {} devices", parts.size(),
          positions.size());
  std::map<uint32_t, Tensor> fine;  // by position
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    const uint32_t position = positions[i][0];
    const Shape wanted = sharding::local_shape(on, without(spec, on.fine_axis()), shape, position);
    const std::string device = engine::Session::current().device_name(on.places[position].device);
    require(part.shape() == wanted && part.dtype() == parts[0].dtype() && part.device() == device,
            "[from_shards] part {} is {} {} on {}; position {} of the mesh takes {} {} on {}", i,
            name_of(part.dtype()), tensor::lazy_text(part), part.device(), position,
            name_of(parts[0].dtype()), tensor::lazy_text(wanted), device);
    for (const uint32_t finer : positions[i])
      fine.emplace(finer, finer_part(on, spec, shape, part, finer));
  }
  std::vector<engine::TensorState*> states;
  for (const auto& [position, part] : fine) states.push_back(tensor::state_of(part).get());
  return tensor::tensor_of(engine::Session::current().join_parts(on, spec, shape, states));
}

}  // namespace plugrad
