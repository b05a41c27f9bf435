#include "distributed/control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/bytes.h"

namespace plugrad::distributed {
namespace {

// Another number in a process of another byte order; increased with the format.
constexpr std::uint32_t kMark = 0x50475201;
constexpr std::size_t kNameBytes = 100, kTextBytes = 2000, kCountsShown = 8;

Kind kind_of_channel(Kind kind) {
  return kind == Kind::Receive ? Kind::Send : kind;
}

std::vector<std::uint32_t> ranks_of(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> ranks(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(ranks.data(), bytes.data(), ranks.size() * sizeof(std::uint32_t));
  return ranks;
}

std::string counts_text(const Call& call) {
  const std::vector<std::int64_t>& counts = call.counts;
  if (call.kind == Kind::AllToAll) return "";
  if (counts.size() == 1) return fmt::format("{}", counts[0]);
  if (counts.size() <= kCountsShown) return fmt::format("[{}]", fmt::join(counts, ", "));
  const std::uint64_t hash = hash64(std::as_bytes(std::span(counts)));
  return fmt::format("{} in {} parts, hash {:08x}", std::reduce(counts.begin(), counts.end()),
                     counts.size(), hash & 0xffffffff);
}

}  // namespace

std::string_view name_of(Reduction reduction) {
  constexpr std::string_view kNames[] = {"add", "mul", "max", "min"};
  return kNames[static_cast<std::size_t>(reduction)];
}

std::string quoted_name(const std::string& tensor) {
  if (tensor.size() <= kNameBytes) return fmt::format("\"{}\"", tensor);
  return fmt::format("\"{}…\"", tensor.substr(0, kNameBytes));
}

std::string to_text(const Description& d) {
  const bool reduces = d.kind == Kind::AllReduce || d.kind == Kind::ReduceScatter;
  std::string more = reduces ? fmt::format(", {}", name_of(d.reduction)) : "";
  if (d.kind == Kind::Broadcast) more = fmt::format(", from rank {}", d.root);
  const std::string counts = d.kind == Kind::AllToAll ? fmt::format("{} to and {} from this rank",
                                                                    d.to_reader, d.from_reader)
                                                      : d.counts;
  return fmt::format("{} of {} ({}, {} elements{})", name_of(d.kind), quoted_name(d.tensor),
                     name_of(d.dtype), counts, more);
}

std::vector<std::byte> encode(const Control& c) {
  ByteWriter out;
  out.put(kMark).put(c.type).put(c.kind).put_text(std::string_view(c.text).substr(0, kTextBytes));
  out.put_text(c.place.machine).put(c.place.pid).put_bytes(std::as_bytes(std::span(c.silent)));
  if (c.type == ControlType::Arrive) {
    const Description& d = c.description;
    out.put(c.channel).put(c.number).put(c.history).put(c.tag);
    out.put(d.kind).put(d.reduction).put(d.dtype).put(d.root).put(d.to_reader).put(d.from_reader);
    // One byte more than is shown, so that a longer name looks cut here and there.
    out.put_text(d.counts).put_text(std::string_view(d.tensor).substr(0, kNameBytes + 1));
    out.put_text(std::string_view(d.program).substr(0, kNameBytes));
  }
  return {out.bytes().begin(), out.bytes().end()};
}

std::optional<Control> decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  if (in.get<std::uint32_t>() != kMark) return std::nullopt;
  Control c;
  c.type = in.get<ControlType>();
  c.kind = in.get<ErrorKind>();
  c.text = in.get_text();
  c.place.machine = in.get_text();
  c.place.pid = in.get<std::int32_t>();
  c.silent = ranks_of(in.get_bytes());
  if (c.type == ControlType::Arrive) {
    c.channel = in.get<Hash128>();
    c.number = in.get<std::uint64_t>();
    c.history = in.get<std::uint64_t>();
    c.tag = in.get<std::int32_t>();
    Description& d = c.description;
    d.kind = in.get<Kind>();
    d.reduction = in.get<Reduction>();
    d.dtype = in.get<DType>();
    d.root = in.get<std::uint32_t>();
    d.to_reader = in.get<std::int64_t>();
    d.from_reader = in.get<std::int64_t>();
    d.counts = in.get_text();
    d.tensor = in.get_text();
    d.program = in.get_text();
  }
  if (!in.is_whole()) return std::nullopt;
  return c;
}

Description describe(const Call& call, std::uint32_t reader) {
  Description d{.kind = call.kind,
                .reduction = call.reduction,
                .dtype = call.dtype,
                .root = call.kind == Kind::Broadcast ? call.peer : 0,
                .counts = counts_text(call),
                .tensor = call.tensor,
                .program = call.program};
  if (call.kind == Kind::AllToAll) {
    d.to_reader = call.counts[reader];
    d.from_reader = call.receive_counts[reader];
  }
  return d;
}

std::uint64_t extend_history(std::uint64_t history, const Description& d) {
  ByteWriter bytes;
  const bool reduces = d.kind == Kind::AllReduce || d.kind == Kind::ReduceScatter;
  bytes.put(history).put(kind_of_channel(d.kind)).put(d.dtype).put(d.root);
  bytes.put(reduces ? d.reduction : Reduction::Add).put_text(d.counts).put_text(d.tensor);
  bytes.put_text(d.program);
  return hash64(bytes.bytes());
}

std::string ranks_text(std::span<const std::uint32_t> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace plugrad::distributed
