#include "engine/plan/ready_plan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "base/check.h"
#include "base/settings.h"
#include "base/trace/trace.h"
#include "engine/execute/collective_step.h"
#include "engine/execute/launch_log.h"
#include "engine/execute/loop_run.h"
#include "engine/execute/prepared_steps.h"
#include "engine/plan/trace_plan.h"
#include "engine/refine/promotion.h"
#include "engine/refine/refinement.h"
#include "engine/report.h"
#include "schedule/lower/movement.h"

namespace plugrad::engine {
namespace {

using Kind = schedule::PlannedBuffer::Kind;

uint64_t size_in_bytes(const schedule::PlannedBuffer& buffer) {
  return static_cast<uint64_t>(buffer.elem_count) * size_of(buffer.dtype);
}

// Adds the purpose of the allocation to an out-of-memory error.
template <class Purpose>
std::shared_ptr<runtime::Buffer> allocate_for(runtime::Device& device, uint64_t size_bytes,
                                              const Purpose& purpose, bool from_host = false) {
  try {
    return from_host ? device.allocate_for_host_bytes(size_bytes) : device.allocate(size_bytes);
  } catch (const OutOfMemoryError& e) {
    throw OutOfMemoryError(e.size_bytes(), fmt::format("{}. It is for {}", e.what(), purpose()));
  }
}

// An output in this memory; in that of a donated input, which stays valid until donate_inputs().
ValuePtr output_in(const schedule::PlannedBuffer& planned,
                   std::shared_ptr<runtime::Buffer> buffer) {
  auto value = std::make_shared<Value>();
  value->dtype = planned.dtype;
  value->device = planned.device;
  value->size_bytes = size_in_bytes(planned);
  value->buffer = std::move(buffer);
  return value;
}

ValuePtr make_output(const schedule::PlannedBuffer& planned, runtime::Device& device) {
  return output_in(planned, allocate_for(device, size_in_bytes(planned), [&] {
                     return fmt::format("{} elements of {}", planned.elem_count,
                                        name_of(planned.dtype));
                   }));
}

// The values and buffers of one run, by plan buffer.
struct Bindings {
  std::vector<ValuePtr> values;  // inputs and outputs; null for temporaries
  std::vector<runtime::Buffer*> buffers;
};

Bindings bind_buffers(ReadyPlan& ready, std::span<const ValuePtr> inputs,
                      std::span<const schedule::Donation> donations, DeviceTable& devices) {
  const auto& planned = ready.plan.buffers;
  std::unordered_map<uint32_t, uint32_t> input_of;
  for (const schedule::Donation& pair : donations) input_of.emplace(pair.output, pair.input);
  const auto make = [&](size_t buffer) {
    const auto input = input_of.find(static_cast<uint32_t>(buffer));
    return input == input_of.end()
               ? make_output(planned[buffer], *ready.buffer_devices[buffer])
               : output_in(planned[buffer], inputs[planned[input->second].number]->buffer);
  };
  Bindings bound{std::vector<ValuePtr>(planned.size()),
                 std::vector<runtime::Buffer*>(planned.size())};
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].kind == Kind::Temporary) {
      bound.buffers[i] = ready.temporaries->buffers[i].get();
      continue;
    }
    if (planned[i].kind == Kind::Constant)
      bound.values[i] = ready.constants[planned[i].number];
    else
      bound.values[i] = planned[i].kind == Kind::Input ? inputs[planned[i].number] : make(i);
    bound.buffers[i] = &buffer_of(*bound.values[i], devices);
  }
  return bound;
}

// Invalidates donated inputs: from here on their memory may already hold the output.
void donate_inputs(std::span<const schedule::Donation> donations, const Bindings& bound) {
  for (const schedule::Donation& pair : donations) {
    bound.values[pair.input]->buffer.reset();
    bound.values[pair.input]->with_room.reset();
    bound.values[pair.input]->is_gone = true;
  }
}

// Everything that can fail before the first launch.
void prepare_steps(ReadyPlan& ready, std::span<runtime::Buffer* const> buffers) {
  if (!ready.prepared) ready.prepared = std::make_shared<PreparedSteps>(ready);
  ready.prepared->set_buffers(ready, buffers);
}

void give_each_step(ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                    std::span<const ValuePtr> values, LaunchLog& log,
                    Refinement* refinement = nullptr) {
  std::vector<runtime::Buffer*> params;
  CollectivesInFlight collectives(ready, buffers, log);
  for (size_t i = 0; i < ready.plan.steps.size(); ++i) {
    const schedule::Step& step = ready.plan.steps[i];
    if (step.kind == schedule::Step::Kind::Copy) {
      log.copy(*buffers[step.buffers[0]], *buffers[step.buffers[1]], step.movement.get());
      continue;
    }
    if (step.kind == schedule::Step::Kind::Collective) {
      collectives.start(step);
      continue;
    }
    if (step.kind == schedule::Step::Kind::Wait) {
      collectives.wait(step);
      continue;
    }
    if (step.kind == schedule::Step::Kind::Loop) {
      run_loop(ready.loops[i], step.buffers, buffers, values, log);
      continue;
    }
    params.clear();
    log.at({ready.trace.id, static_cast<int32_t>(i)});
    for (uint32_t buffer : step.buffers) params.push_back(buffers[buffer]);
    if (refinement)
      refinement->launch(ready, i, params, log);
    else
      log.launch(*ready.kernels[i], params, step.scalars);
  }
}

// A reader of an output waits for these steps and not for later ones.
void run_steps(ReadyPlan& ready, const Bindings& bound, LaunchLog& log) {
  const auto each_output = [&](auto&& act) {
    for (size_t i = 0; i < bound.buffers.size(); ++i)
      if (ready.plan.buffers[i].kind == Kind::Output) act(*bound.buffers[i]);
  };
  each_output([](runtime::Buffer& buffer) { buffer.forget_written(); });
  give_steps(ready, bound.buffers, bound.values, log);
  each_output([](runtime::Buffer& buffer) { buffer.note_written(); });
}

// Records the length of a counted loop while the host has it; later it must be read from the
// device.
void know_lengths(const ReadyPlan& ready, std::span<const ValuePtr> inputs) {
  for (size_t i = 0; i < ready.loops.size(); ++i) {
    if (!ready.loops[i].body || !ready.loops[i].body->is_counted) continue;
    const auto& count =
        ready.plan.buffers[ready.plan.steps[i].buffers[ready.loops[i].body->count_param()]];
    if (count.kind == Kind::Input) know_size(*inputs[count.number]);
  }
}

// Schedules chosen by hand may compute more. Tiles and rests of others repeat some operations that
// the scheduler does not count; how many depends on the processor.
void check_work(const ReadyPlan& ready) {
  constexpr double kOfSchedules = 2;
  PlanWork work = work_of(ready);
  work.allowed += (kOfSchedules - 1) * 1.25 * static_cast<double>(work.graph);
  ensure(work.is_bounded(),
         "[plan] the kernels execute {} operations for {} of the graph; {:.0f} more are allowed",
         work.executed, work.graph, work.allowed);
}

}  // namespace

void give_steps(ReadyPlan& ready, std::span<runtime::Buffer* const> buffers,
                std::span<const ValuePtr> values, LaunchLog& log) {
  if (tracing()) trace_plan(ready);
  promote(ready);
  if (log.is_timed()) return give_each_step(ready, buffers, values, log);
  if (const auto refinement = ready.refinement; refinement && refinement->begin(ready)) {
    give_each_step(ready, buffers, values, log, refinement.get());
    return refinement->end(ready);
  }
  prepare_steps(ready, buffers);
  ready.prepared->run(ready, buffers, values, log);
}

uint64_t size_of_plan(const ReadyPlan& ready) {
  constexpr uint64_t kPlan = 4096, kStep = 512, kBuffer = 128;  // with what the first run prepares
  uint64_t bytes = kPlan + kStep * ready.plan.steps.size() + kBuffer * ready.plan.buffers.size();
  for (const auto& ast : ready.plan.asts) bytes += ast->graph.size_bytes();
  for (const ReadyLoop& loop : ready.loops)
    if (loop.plan) bytes += size_of_plan(*loop.plan);
  return bytes;
}

void require_there(const Value& value) {
  if (value.is_gone)
    fail(ErrorKind::Device,
         "[realize] {} elements of {} are gone: a step began to overwrite them and failed; assign "
         "the "
         "tensor anew, as from a file",
         value.size_bytes / size_of(value.dtype), name_of(value.dtype));
}

runtime::Buffer& buffer_of(Value& value, DeviceTable& devices) {
  require_there(value);
  if (!value.buffer) {
    const auto purpose = [&] {
      return fmt::format("{} elements of {} that come from the host",
                         value.size_bytes / size_of(value.dtype), name_of(value.dtype));
    };
    auto buffer = allocate_for(devices.open(value.device), value.size_bytes, purpose, true);
    buffer->copy_in(value.host.data(), value.size_bytes);
    value.buffer = std::move(buffer);
    value.host = {};
    value.host_owner.reset();
  }
  return *value.buffer;
}

namespace {

// Compiles a user's AST like any kernel, unless the user gave source or IR for this device.
KernelRequest request_of(UserKernelPtr user, runtime::Device& device) {
  const bool as_given = !user->ast || !user->ir.empty() ||
                        std::ranges::find(user->sources, device.plugin_name(),
                                          &UserKernelCode::Source::device) != user->sources.end();
  KernelRequest request{as_given ? nullptr : user->ast, &device};
  request.user = std::move(user);
  return request;
}

// Rejects a buffer of a dtype that the device cannot store. 64-bit integers may be stored as pairs
// of words.
void require_storable(const schedule::PlannedBuffer& buffer, const runtime::Device& device) {
  const uint32_t held = device.caps().storage_dtypes;
  const auto holds = [&](DType dtype) { return held >> static_cast<uint32_t>(dtype) & 1; };
  const bool is_wide = buffer.dtype == DType::I64 || buffer.dtype == DType::U64;
  if (held == 0 || holds(buffer.dtype) || (is_wide && holds(DType::U32))) return;
  fail(ErrorKind::Unsupported,
       "[realize] {} ({}) does not hold {}: cast to a dtype that it holds before the values go "
       "there, or use another device",
       device.name(), device.info().name, name_of(buffer.dtype));
}

}  // namespace

namespace {

/// The bytes of constants in their dtype.
std::vector<std::byte> memory_of(std::span<const uint64_t> constants, DType dtype) {
  const size_t size = size_of(dtype);
  std::vector<std::byte> bytes(constants.size() * size);
  for (size_t i = 0; i < constants.size(); ++i) {
    const uint64_t bits = storage_bits(constants[i], dtype);
    std::memcpy(bytes.data() + i * size, &bits, size);  // for integers, the low bytes
  }
  return bytes;
}

void make_constants(ReadyPlan& ready, DeviceTable& devices) {
  for (const schedule::PlannedBuffer& buffer : ready.plan.buffers) {
    if (buffer.kind != Kind::Constant) continue;
    auto bytes = std::make_shared<std::vector<std::byte>>(
        memory_of(ready.plan.constants[buffer.number], buffer.dtype));
    auto value = std::make_shared<Value>();
    value->dtype = buffer.dtype;
    value->device = buffer.device;
    value->size_bytes = bytes->size();
    value->host = *bytes;
    value->host_owner = std::move(bytes);
    buffer_of(*value, devices);
    ready.constants.push_back(std::move(value));
  }
}

// A kernel costs 5 to 30 ms of the compiler, and runs in the first call and once for the calls after
// it. In that time the host moves so many elements (2 to 6 ns each on Zen 3).
constexpr int64_t kMostMoved = int64_t{1} << 22;

void move_on_host(ReadyPlan& ready, std::span<const uint32_t> constants, DeviceTable& devices) {
  for (schedule::Step& step : ready.plan.steps) {
    if (step.kind != schedule::Step::Kind::Kernel || step.buffers.size() != 2) continue;
    const schedule::PlannedBuffer &to = ready.plan.buffers[step.buffers[0]],
                                  &from = ready.plan.buffers[step.buffers[1]];
    if (from.kind != Kind::Input || !std::ranges::binary_search(constants, from.number) ||
        to.elem_count > kMostMoved || devices.open(step.device).caps().unified_memory == 0)
      continue;
    step.movement = schedule::movement_of(*ready.plan.asts[step.ast]);
    if (step.movement) step.kind = schedule::Step::Kind::Copy;
  }
}

}  // namespace

void prepare(ReadyPlan& ready, DeviceTable& devices, KernelCache& kernels,
             const UserKernelTable& user_kernels, const KernelOptions& options,
             const ReadyPlan* like, std::span<const uint32_t> constants) {
  const schedule::Plan& plan = ready.plan;
  move_on_host(ready, constants, devices);
  for (const auto& buffer : plan.buffers) {
    ready.buffer_devices.push_back(&devices.open(buffer.device));
    require_storable(buffer, *ready.buffer_devices.back());
  }
  make_constants(ready, devices);
  for (const auto& arena : plan.arenas) ready.arena_devices.push_back(&devices.open(arena.device));
  std::vector<KernelRequest> requests;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const schedule::Step& step = plan.steps[i];
    if (step.kind == schedule::Step::Kind::Kernel) {
      requests.push_back({plan.asts[step.ast], &devices.open(step.device)});
      if (like && !step.numbers.empty() && i < like->kernels.size() && like->kernels[i])
        requests.back().schedule = &like->kernels[i]->code.schedule;
    } else if (step.kind == schedule::Step::Kind::User)
      requests.push_back(request_of(user_kernels[step.ast], devices.open(step.device)));
  }
  const auto made = kernels.get(requests, options);
  auto next = made.begin();
  for (const schedule::Step& step : plan.steps)
    ready.kernels.push_back(step.kind == schedule::Step::Kind::Kernel ||
                                    step.kind == schedule::Step::Kind::User
                                ? *next++
                                : nullptr);
  if (settings().verify && !settings().noopt && settings().optimisations.empty()) check_work(ready);
}

void set_numbers(ReadyPlan& ready, std::span<const uint64_t> numbers) {
  if (numbers.empty()) return;
  for (schedule::Step& step : ready.plan.steps) {
    step.scalars.resize(step.numbers.empty() ? step.scalars.size() : step.numbers.size());
    for (size_t i = 0; i < step.numbers.size(); ++i) step.scalars[i] = numbers[step.numbers[i]];
  }
  if (ready.prepared) ready.prepared->set_scalars(ready);
}

std::vector<ValuePtr> run_plan(ReadyPlan& ready, std::span<const ValuePtr> inputs,
                               const MayDonate& may_donate, ArenaPool& arenas, DeviceTable& devices,
                               Statistics& statistics) {
  arenas.provide(ready);
  know_lengths(ready, inputs);
  std::vector<schedule::Donation> donations;
  if (may_donate)
    std::ranges::copy_if(ready.plan.donations, std::back_inserter(donations), may_donate);
  Bindings bound = bind_buffers(ready, inputs, donations, devices);
  LaunchLog log(statistics);
  if (!log.is_timed()) prepare_steps(ready, bound.buffers);
  std::vector<ValuePtr> roots;
  for (uint32_t buffer : ready.plan.root_buffers) roots.push_back(bound.values[buffer]);
  donate_inputs(donations, bound);
  run_steps(ready, bound, log);
  return roots;
}

std::shared_ptr<runtime::Buffer>& ArenaPool::block(runtime::Device& device, uint32_t index) {
  const auto same = [&](const Block& b) { return b.device == &device && b.index == index; };
  const auto found = std::ranges::find_if(blocks_, same);
  return found != blocks_.end() ? found->buffer
                                : blocks_.emplace_back(&device, index, nullptr).buffer;
}

namespace {

// The enclosing plan's values stay live while a loop's body runs, so each depth has its own arenas.
uint32_t arena_of(const ReadyPlan& ready, uint32_t arena) {
  return arena | ready.depth << 16;
}

}  // namespace

void ArenaPool::grow(const ReadyPlan& ready) {
  for (const ReadyLoop& loop : ready.loops)
    if (loop.plan) grow(*loop.plan);
  for (uint32_t i = 0; i < ready.plan.arenas.size(); ++i) {
    auto& buffer = block(*ready.arena_devices[i], arena_of(ready, i));
    const uint64_t size_bytes = ready.plan.arenas[i].size_bytes;
    if (buffer && buffer->size_bytes() >= size_bytes) continue;
    forget_temporaries();
    buffer.reset();  // first, so that its memory can serve the larger one
    buffer = allocate_for(*ready.arena_devices[i], size_bytes, [&] {
      return fmt::format("values between {} kernels", ready.plan.steps.size());
    });
  }
}

void ArenaPool::provide(ReadyPlan& ready) {
  grow(ready);
  place(ready);
}

void ArenaPool::place(ReadyPlan& ready) {
  for (const ReadyLoop& loop : ready.loops)
    if (loop.plan) place(*loop.plan);
  if (ready.temporaries && !ready.temporaries->buffers.empty()) return;
  if (!ready.temporaries) {
    drop_those_of_dead_plans();
    handed_out_.push_back(std::make_shared<Temporaries>());
    ready.temporaries = handed_out_.back();
  }
  const auto& planned = ready.plan.buffers;
  std::vector<std::shared_ptr<runtime::Buffer>> places(planned.size());
  std::vector<bool> used(planned.size());  // a buffer that no step uses gets no memory
  for (const schedule::Step& step : ready.plan.steps)
    for (uint32_t buffer : step.buffers) used[buffer] = true;
  for (size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].kind != Kind::Temporary || !used[i]) continue;
    const uint32_t arena = planned[i].arena;
    places[i] = runtime::sub_buffer(block(*ready.arena_devices[arena], arena_of(ready, arena)),
                                    planned[i].offset_bytes, size_in_bytes(planned[i]));
  }
  ready.temporaries->buffers = std::move(places);
  ++ready.temporaries->version;
}

void ArenaPool::drop_those_of_dead_plans() {
  std::erase_if(handed_out_, [](const auto& t) { return t.use_count() == 1; });
}

void ArenaPool::forget_temporaries() {
  drop_those_of_dead_plans();
  for (const auto& temporaries : handed_out_) temporaries->buffers.clear();
}

void ArenaPool::release() {
  forget_temporaries();
  blocks_.clear();
}

uint64_t ArenaPool::size_bytes() const {
  uint64_t total = 0;
  for (const Block& b : blocks_) total += b.buffer ? b.buffer->size_bytes() : 0;
  return total;
}

}  // namespace plugrad::engine
