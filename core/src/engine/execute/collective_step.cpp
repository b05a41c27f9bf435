#include "engine/execute/collective_step.h"

#include <fmt/ranges.h>

#include "base/check.h"
#include "distributed/backend.h"
#include "runtime/memory/mapping.h"
#include "sharding/collectives.h"

namespace plugrad::engine {
namespace {

using sharding::CollectiveKind;

distributed::Kind kind_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return distributed::Kind::AllReduce;
    case CollectiveKind::ReduceScatter:
      return distributed::Kind::ReduceScatter;
    case CollectiveKind::AllGather:
      return distributed::Kind::AllGather;
    case CollectiveKind::AllToAll:
      break;
  }
  return distributed::Kind::AllToAll;
}

distributed::Reduction reduction_of(Op op) {
  if (op == Op::Mul) return distributed::Reduction::Mul;
  return op == Op::Max ? distributed::Reduction::Max : distributed::Reduction::Add;
}

distributed::Call call_of(const sharding::CollectiveArg& arg, DType dtype) {
  distributed::Call call;
  call.kind = kind_of(arg.kind);
  call.reduction = reduction_of(arg.reduction);
  call.dtype = dtype;
  call.counts = arg.kind == CollectiveKind::AllGather ? arg.received : arg.sent;
  if (arg.kind == CollectiveKind::AllToAll) call.receive_counts = arg.received;
  call.group.assign(arg.ranks.begin(), arg.ranks.end());
  // Uneven parts have other shapes on other ranks: the name must be alike on all of them.
  call.tensor = fmt::format("{} ({}), collective {} of the plan", name_of(dtype),
                            fmt::join(arg.whole, ", "), arg.order + 1);
  return call;
}

}  // namespace

void run_collective(const schedule::Step& step, DType dtype, runtime::Buffer& destination,
                    const runtime::Buffer& source) {
  distributed::Backend* const backend = distributed::backend();
  ensure(backend != nullptr, "a collective between processes runs without a backend");
  const std::vector<int64_t> list(step.scalars.begin(), step.scalars.end());
  distributed::Call call = call_of(sharding::CollectiveArg::of(list), dtype);
  runtime::Mapping from(source), to(destination);  // empty where mapping would copy
  std::vector<std::byte> sent(from ? 0 : source.size_bytes());
  std::vector<std::byte> received(to ? 0 : destination.size_bytes());
  if (!from) source.copy_out(sent.data(), sent.size());
  call.send = from ? from.bytes() : sent.data();
  call.receive = to ? to.bytes() : received.data();
  backend->run(std::move(call));
  if (from) from.end();
  if (to)
    to.end();
  else
    destination.copy_in(received.data(), received.size());
}

}  // namespace plugrad::engine
