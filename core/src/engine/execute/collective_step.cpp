#include "engine/execute/collective_step.h"

#include <fmt/ranges.h>

#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "base/trace/trace.h"
#include "distributed/backend.h"
#include "engine/recording/recorded_functions.h"
#include "runtime/memory/mapping.h"
#include "sharding/collectives.h"

namespace plugrad::engine {
namespace {

using schedule::Step;
using sharding::CollectiveArg;
using Counts = std::vector<int64_t>;

distributed::Reduction reduction_of(Op op) {
  if (op == Op::Mul) return distributed::Reduction::Mul;
  return op == Op::Max ? distributed::Reduction::Max : distributed::Reduction::Add;
}

// Alike on all ranks, which may have other shapes, of uneven parts, and other numbers of calls.
std::string name_of_call(std::span<const CollectiveArg> args, DType dtype) {
  std::string name = fmt::format("{} ({})", name_of(dtype), fmt::join(args[0].whole, ", "));
  if (args.size() > 1) name += fmt::format(" with the {} next ones", args.size() - 1);
  return name;
}

void add_to(Counts& sum, const Counts& counts) {
  sum.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

distributed::Call call_of(std::span<const CollectiveArg> args, DType dtype) {
  distributed::Call call;
  const CollectiveArg& first = args[0];
  call.kind = first.kind;
  call.reduction = reduction_of(first.reduction);
  call.dtype = dtype;
  for (const CollectiveArg& arg : args) {
    add_to(call.counts, first.kind == CollectiveKind::AllGather ? arg.received : arg.sent);
    if (first.kind == CollectiveKind::AllToAll) add_to(call.receive_counts, arg.received);
  }
  const bool is_pair = first.kind == CollectiveKind::Send || first.kind == CollectiveKind::Receive;
  if (!is_pair) call.group.assign(first.ranks.begin(), first.ranks.end());
  call.peer = static_cast<uint32_t>(first.peer);
  call.tensor = name_of_call(args, dtype);
  call.program = RecordedFunctions::of_this_thread().text();
  return call;
}

/// How the parts of a buffer lie in what its process sends or receives: for each member of the
/// group one after another, for each member of the bucket.
std::vector<Counts> counts_of_parts(std::span<const CollectiveArg> args, bool is_sent,
                                    std::span<const int64_t> whole) {
  std::vector<Counts> parts;
  for (size_t i = 0; i < args.size(); ++i) {
    const Counts& counts = is_sent ? args[i].sent : args[i].received;
    parts.push_back(counts.size() < args[i].ranks.size() ? Counts{whole[i]} : counts);
  }
  return parts;
}

/// Calls copy(bucket member, its byte offset, byte offset in the message, bytes) for each part.
template <class Copy>
void each_part(std::span<const Counts> parts, uint64_t element_bytes, const Copy& copy) {
  std::vector<uint64_t> offsets(parts.size(), 0);
  uint64_t at = 0;
  for (size_t of_group = 0; of_group < parts[0].size(); ++of_group)
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t bytes = static_cast<uint64_t>(parts[i][of_group]) * element_bytes;
      copy(i, offsets[i], at, bytes);
      offsets[i] += bytes;
      at += bytes;
    }
}

}  // namespace

struct CollectivesInFlight::Started {
  std::string name;
  uint64_t begin_ns = 0, bytes = 0;
  int32_t step = 0;  // of the plan
  std::vector<CollectiveArg> args;
  std::optional<runtime::Mapping> from, to;  // of one member: empty where mapping would copy
  std::vector<std::byte> sent, received;     // where there is no mapping
  distributed::Request request;
};

CollectivesInFlight::CollectivesInFlight(const ReadyPlan& ready,
                                         std::span<runtime::Buffer* const> buffers, LaunchLog& log)
    : plan_(ready.plan), trace_id_(ready.trace.id), buffers_(buffers), log_(log) {}

CollectivesInFlight::~CollectivesInFlight() {
  for (const auto& [buffer, call] : started_) {
    try {
      if (call->request) distributed::backend()->wait(call->request);
    } catch (const std::exception&) {  // the error that is on its way says more
    }
  }
}

void CollectivesInFlight::start(const Step& step) {
  distributed::Backend* const backend = distributed::backend();
  ensure(backend != nullptr, "a collective between processes runs without a backend");
  require(
      distributed::is_thread_of_init(),
      "[realize] a value on a mesh of several processes is computed in another thread than that "
      "which called distributed::init(); threads of other processes may come in another order, "
      "so call init(), and compute such values, in one thread");
  auto& call = *started_.emplace(step.buffers[0], std::make_unique<Started>()).first->second;
  call.step = static_cast<int32_t>(&step - plan_.steps.data());
  call.args = sharding::args_of(step.scalars);
  const DType dtype = plan_.buffers[step.buffers[0]].dtype;
  std::vector<int64_t> sizes;
  uint64_t received = 0;
  for (size_t i = 0; i < step.buffers.size(); i += 2) {
    received += buffers_[step.buffers[i]]->size_bytes();
    call.bytes += buffers_[step.buffers[i + 1]]->size_bytes();
    sizes.push_back(plan_.buffers[step.buffers[i + 1]].elem_count);
  }
  distributed::Call made = call_of(call.args, dtype);
  call.name = fmt::format("{} {} bytes", name_of(made.kind), call.bytes);
  if (call.args.size() > 1) call.name += fmt::format(" of {} values", call.args.size());
  if (call.args.size() == 1) {
    call.from.emplace(*buffers_[step.buffers[1]]);
    call.to.emplace(*buffers_[step.buffers[0]]);
  }
  if (!call.from || !*call.from) {
    call.sent.resize(call.bytes);
    const auto parts = counts_of_parts(call.args, true, sizes);
    each_part(parts, size_of(dtype), [&](size_t i, uint64_t from, uint64_t to, uint64_t bytes) {
      buffers_[step.buffers[2 * i + 1]]->copy_out(call.sent.data() + to, bytes, from);
    });
  }
  if (!call.to || !*call.to) call.received.resize(received);
  made.send = call.sent.empty() ? call.from->bytes() : call.sent.data();
  made.receive = call.received.empty() ? call.to->bytes() : call.received.data();
  call.begin_ns = monotonic_ns();
  call.request = backend->start(std::move(made));
}

void CollectivesInFlight::trace_call(const Started& call, uint64_t done_ns, uint64_t wait_begin_ns,
                                     uint64_t wait_end_ns) const {
  trace::record(trace::Collective{.track = trace::collectives_track(),
                                  .kind = call.args[0].kind,
                                  .bytes = call.bytes,
                                  .values = static_cast<uint32_t>(call.args.size()),
                                  .start_ns = call.begin_ns,
                                  .duration_ns = done_ns - call.begin_ns,
                                  .waited_ns = wait_end_ns - wait_begin_ns,
                                  .plan = trace_id_,
                                  .step = call.step});
  trace::record(trace::Wait{trace::thread_track(), 0, wait_begin_ns, wait_end_ns - wait_begin_ns});
}

void CollectivesInFlight::wait(const Step& step) {
  const auto found = started_.find(step.buffers[0]);
  ensure(found != started_.end(), "a plan waits for a collective that it has not started");
  Started& call = *found->second;
  const uint64_t begin_ns = monotonic_ns();
  const uint64_t done_ns = distributed::backend()->wait(call.request);
  const uint64_t end_ns = monotonic_ns();
  if (tracing()) trace_call(call, done_ns, begin_ns, end_ns);
  if (call.from && *call.from) call.from->end();
  if (call.to && *call.to) call.to->end();
  if (!call.received.empty()) {
    const DType dtype = plan_.buffers[step.buffers[0]].dtype;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < step.buffers.size(); i += 2)
      sizes.push_back(plan_.buffers[step.buffers[i]].elem_count);
    const auto parts = counts_of_parts(call.args, false, sizes);
    each_part(parts, size_of(dtype), [&](size_t i, uint64_t to, uint64_t from, uint64_t bytes) {
      buffers_[step.buffers[2 * i]]->copy_in(call.received.data() + from, bytes, to);
    });
  }
  log_.collective(call.name, buffers_[step.buffers[0]]->device(), call.bytes, end_ns - begin_ns,
                  end_ns - call.begin_ns);
  started_.erase(found);
}

}  // namespace plugrad::engine
