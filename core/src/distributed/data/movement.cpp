#include "distributed/data/movement.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace plugrad::distributed {
namespace {

// Pieces of a stream in transit at once.
constexpr std::size_t kWindow = 4;
// Below this, a broadcast is sent by the root alone.
constexpr std::size_t kScatteredBytes = 64 << 10;

std::size_t piece_bytes(std::size_t members) {
  constexpr std::size_t kLeast = 64 << 10, kMost = 1 << 20;
  std::size_t piece = kMost;
  while (piece > kLeast && piece * members > 8 * kMost) piece /= 2;
  return piece;
}

void copy(std::byte* to, const std::byte* from, std::size_t size) {
  if (size > 0 && to != from) std::memcpy(to, from, size);
}

// Elements before each member's part, and all of them.
std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> out(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), out.begin() + 1);
  return out;
}

// Parts of near equal size.
std::vector<std::int64_t> slices_of(std::int64_t count, std::size_t members) {
  const auto n = static_cast<std::int64_t>(members);
  std::vector<std::int64_t> out(members);
  for (std::int64_t i = 0; i < n; ++i)
    out[static_cast<std::size_t>(i)] = count / n + (i < count % n ? 1 : 0);
  return out;
}

}  // namespace

Movement::Movement(const Meeting& m)
    : reduction_(m.call.reduction),
      dtype_(m.call.dtype),
      piece_(piece_bytes(m.tag_of_member.size())) {
  plan(m);
}

void Movement::plan(const Meeting& m) {
  switch (m.call.kind) {
    case Kind::AllReduce:
      return plan_all_reduce(m);
    case Kind::ReduceScatter:
      return plan_reduce_scatter(m);
    case Kind::AllGather:
      return plan_all_gather(m);
    case Kind::AllToAll:
      return plan_all_to_all(m);
    case Kind::Broadcast:
      return plan_broadcast(m);
    case Kind::Send:
    case Kind::Receive:
      return plan_pair(m);
  }
}

std::size_t Movement::bytes_of(std::int64_t elements) const {
  return static_cast<std::size_t>(elements) * size_of(dtype_);
}

std::size_t Movement::send_to(const Meeting& m, std::uint32_t member, const std::byte* data,
                              std::size_t size, std::size_t ready, int phase) {
  outgoing_.push_back({.peer = m.call.group[member],
                       .tag = m.own_tag + phase,
                       .data = const_cast<std::byte*>(data),
                       .size = size,
                       .allowed = ready});
  return outgoing_.size() - 1;
}

std::size_t Movement::receive_from(const Meeting& m, std::uint32_t member, std::byte* data,
                                   std::size_t size, int phase) {
  incoming_.push_back({.peer = m.call.group[member],
                       .tag = m.tag_of_member[member] + phase,
                       .data = data,
                       .size = size,
                       .allowed = size});
  return incoming_.size() - 1;
}

void Movement::add_stage(const Meeting& m, const std::byte* own, std::byte* result,
                         std::size_t size) {
  Stage& stage = stage_.emplace(Stage{.own = own, .result = result, .size = size, .self = m.self});
  const std::size_t members = m.call.group.size(), ring = std::min(size, kWindow * piece_);
  stage.staging = std::make_unique_for_overwrite<std::byte[]>(ring * (members - 1));
  std::byte* memory = stage.staging.get();
  for (std::uint32_t member = 0; member < members; ++member) {
    if (member == m.self) continue;
    const std::size_t input = receive_from(m, member, memory, size, 0);
    incoming_[input].ring = incoming_[input].allowed = ring;
    stage.inputs.push_back(input);
    memory += ring;
  }
}

void Movement::plan_all_reduce(const Meeting& m) {
  const Call& call = m.call;
  const std::vector<std::int64_t> offsets =
      offsets_of(slices_of(call.counts[0], call.group.size()));
  const auto offset = [&](std::uint32_t member) { return bytes_of(offsets[member]); };
  const auto size = [&](std::uint32_t member) { return offset(member + 1) - offset(member); };
  add_stage(m, call.send + offset(m.self), call.receive + offset(m.self), size(m.self));
  for (std::uint32_t member = 0; member < call.group.size(); ++member) {
    if (member == m.self) continue;
    const std::size_t sent =
        send_to(m, member, call.send + offset(member), size(member), size(member), 0);
    const std::size_t received =
        receive_from(m, member, call.receive + offset(member), size(member), 1);
    guards_.push_back({.from = sent, .to = received});
    stage_->outputs.push_back(
        send_to(m, member, call.receive + offset(m.self), size(m.self), 0, 1));
  }
}

void Movement::plan_reduce_scatter(const Meeting& m) {
  const Call& call = m.call;
  const std::vector<std::int64_t> offsets = offsets_of(call.counts);
  add_stage(m, call.send + bytes_of(offsets[m.self]), call.receive, bytes_of(call.counts[m.self]));
  for (std::uint32_t member = 0; member < call.group.size(); ++member) {
    const std::size_t size = bytes_of(call.counts[member]);
    if (member != m.self) send_to(m, member, call.send + bytes_of(offsets[member]), size, size, 0);
  }
}

void Movement::plan_all_gather(const Meeting& m) {
  const Call& call = m.call;
  const std::vector<std::int64_t> offsets = offsets_of(call.counts);
  const std::size_t own = bytes_of(call.counts[m.self]);
  copy(call.receive + bytes_of(offsets[m.self]), call.send, own);
  for (std::uint32_t member = 0; member < call.group.size(); ++member) {
    if (member == m.self) continue;
    send_to(m, member, call.send, own, own, 0);
    receive_from(m, member, call.receive + bytes_of(offsets[member]), bytes_of(call.counts[member]),
                 0);
  }
}

void Movement::plan_all_to_all(const Meeting& m) {
  const Call& call = m.call;
  const std::vector<std::int64_t> from = offsets_of(call.counts),
                                  to = offsets_of(call.receive_counts);
  copy(call.receive + bytes_of(to[m.self]), call.send + bytes_of(from[m.self]),
       bytes_of(call.counts[m.self]));
  for (std::uint32_t member = 0; member < call.group.size(); ++member) {
    if (member == m.self) continue;
    const std::size_t size = bytes_of(call.counts[member]);
    send_to(m, member, call.send + bytes_of(from[member]), size, size, 0);
    receive_from(m, member, call.receive + bytes_of(to[member]),
                 bytes_of(call.receive_counts[member]), 0);
  }
}

void Movement::plan_broadcast(const Meeting& m) {
  const Call& call = m.call;
  const std::size_t size = bytes_of(call.counts[0]);
  const auto root = static_cast<std::uint32_t>(
      std::find(call.group.begin(), call.group.end(), call.peer) - call.group.begin());
  if (m.self == root && call.receive) copy(call.receive, call.send, size);
  if (call.group.size() > 2 && size > kScatteredBytes) return plan_scattered_broadcast(m, root);
  if (m.self != root) {
    receive_from(m, root, call.receive, size, 0);
    return;
  }
  for (std::uint32_t member = 0; member < call.group.size(); ++member)
    if (member != root) send_to(m, member, call.send, size, size, 0);
}

void Movement::plan_scattered_broadcast(const Meeting& m, std::uint32_t root) {
  const Call& call = m.call;
  const auto members = static_cast<std::uint32_t>(call.group.size());
  const std::vector<std::int64_t> offsets = offsets_of(slices_of(call.counts[0], members - 1));
  const auto slice = [&](std::uint32_t member) { return member - (member > root ? 1 : 0); };
  const auto offset = [&](std::uint32_t member) { return bytes_of(offsets[slice(member)]); };
  const auto size = [&](std::uint32_t member) {
    return bytes_of(offsets[slice(member) + 1]) - offset(member);
  };
  for (std::uint32_t member = 0; member < members; ++member) {
    if (member == root || (m.self != root && member == m.self)) continue;
    if (m.self == root)
      send_to(m, member, call.send + offset(member), size(member), size(member), 0);
    else
      receive_from(m, member, call.receive + offset(member), size(member), 1);
  }
  if (m.self == root) return;
  const std::size_t own = receive_from(m, root, call.receive + offset(m.self), size(m.self), 0);
  for (std::uint32_t member = 0; member < members; ++member)
    if (member != root && member != m.self)
      forwards_.push_back(
          {.from = own,
           .to = send_to(m, member, call.receive + offset(m.self), size(m.self), 0, 1)});
}

void Movement::plan_pair(const Meeting& m) {
  const std::size_t size = bytes_of(m.call.counts[0]);
  const std::uint32_t other = 1 - m.self;
  if (m.call.kind == Kind::Send)
    send_to(m, other, m.call.send, size, size, 0);
  else
    receive_from(m, other, m.call.receive, size, 0);
}

bool Movement::advance_stream(Transport& transport, Stream& s, bool outgoing) {
  bool progressed = false;
  while (!s.in_transit.empty() && transport.test(s.in_transit.front().message)) {
    s.done += s.in_transit.front().size;
    s.in_transit.pop_front();
    progressed = true;
  }
  while (s.posted < s.size && s.in_transit.size() < kWindow) {
    const std::size_t size = std::min(piece_, s.size - s.posted);
    if (s.posted + size > s.allowed) break;
    std::byte* data = s.data + (s.ring ? s.posted % s.ring : s.posted);
    s.in_transit.push_back({outgoing ? transport.send(s.peer, s.tag, {data, size})
                                     : transport.receive(s.peer, s.tag, {data, size}),
                            size});
    s.posted += size;
    progressed = true;
  }
  return progressed;
}

void Movement::reduce_piece(std::size_t size) {
  Stage& stage = *stage_;
  std::vector<Contribution> contributions;
  for (std::size_t input : stage.inputs) {
    std::byte* data = incoming_[input].data + stage.done % incoming_[input].ring;
    contributions.push_back({data, data});
  }
  contributions.insert(contributions.begin() + stage.self, {stage.own + stage.done, nullptr});
  reduce_tree(reduction_, dtype_, stage.result + stage.done, contributions,
              static_cast<std::int64_t>(size / size_of(dtype_)));
}

bool Movement::advance_stage() {
  if (!stage_) return false;
  Stage& stage = *stage_;
  bool progressed = false;
  while (stage.done < stage.size) {
    const std::size_t size = std::min(piece_, stage.size - stage.done), end = stage.done + size;
    const bool is_there = std::ranges::all_of(
        stage.inputs, [&](std::size_t input) { return incoming_[input].done >= end; });
    if (!is_there) break;
    reduce_piece(size);
    stage.done = end;
    for (std::size_t input : stage.inputs)
      incoming_[input].allowed = std::min(stage.size, end + incoming_[input].ring);
    for (std::size_t output : stage.outputs) outgoing_[output].allowed = end;
    progressed = true;
  }
  return progressed;
}

bool Movement::advance(Transport& transport) {
  bool progressed = false;
  for (const Link& link : guards_) incoming_[link.to].allowed = outgoing_[link.from].done;
  for (Stream& stream : incoming_) progressed |= advance_stream(transport, stream, false);
  progressed |= advance_stage();
  for (const Link& link : forwards_) outgoing_[link.to].allowed = incoming_[link.from].done;
  for (Stream& stream : outgoing_) progressed |= advance_stream(transport, stream, true);
  return progressed;
}

bool Movement::is_done() const {
  const auto whole = [](const Stream& s) { return s.done == s.size; };
  return std::ranges::all_of(incoming_, whole) && std::ranges::all_of(outgoing_, whole) &&
         (!stage_ || stage_->done == stage_->size);
}

std::vector<std::uint32_t> Movement::unfinished_peers() const {
  std::vector<std::uint32_t> out;
  for (const auto* streams : {&incoming_, &outgoing_})
    for (const Stream& stream : *streams)
      if (stream.done < stream.size) out.push_back(stream.peer);
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

void Movement::abandon(Transport& transport) {
  for (Stream& stream : incoming_) {
    for (Piece& piece : stream.in_transit) transport.cancel_receive(piece.message);
    stream.in_transit.clear();
  }
}

}  // namespace plugrad::distributed
