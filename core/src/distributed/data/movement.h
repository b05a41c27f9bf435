// Moves the data of one collective: streams of pieces between ranks, and the reduction of what
// arrives.
//   all-reduce   every member owns a slice: it receives the slice of all others, reduces piece by
//                piece, and sends each reduced piece to all: 2 (n - 1) / n of the data a rank
//   broadcast    the root sends each member a slice, which the member forwards to the others
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "distributed/backend.h"
#include "distributed/data/reduce.h"
#include "distributed/transport.h"

namespace plugrad::distributed {

/// What the members have agreed on: the call, and how messages find it.
struct Meeting {
  const Call& call;
  std::uint32_t self;              ///< this rank's place in the group
  int own_tag;                     ///< of the messages that this rank sends, and the next number
  std::vector<int> tag_of_member;  ///< of the messages of each member
};
inline constexpr int kTagsOfCall = 2;

class Movement {
 public:
  explicit Movement(const Meeting& meeting);

  /// Does what can be done without waiting; whether that was anything.
  bool advance(Transport& transport);
  bool is_done() const;
  /// Ranks with which this rank has still to exchange data.
  std::vector<std::uint32_t> unfinished_peers() const;
  /// Gives every receive up, so that no memory is written any more.
  void abandon(Transport& transport);

 private:
  struct Piece {
    MessageId message;
    std::size_t size;
  };
  struct Stream {
    std::uint32_t peer;
    int tag;
    std::byte* data;  // an outgoing one is only read
    std::size_t size;
    std::size_t allowed;   // up to here pieces may be in transit
    std::size_t ring = 0;  // 0, or the size of the memory that is used again and again
    std::size_t posted = 0, done = 0;
    std::deque<Piece> in_transit = {};
  };
  struct Link {
    std::size_t from, to;  // the stream `to` may go as far as `from` is done
  };
  // Reduces this rank's slice as soon as all have sent a piece of it.
  struct Stage {
    const std::byte* own;
    std::byte* result;
    std::size_t size, done = 0;
    std::uint32_t self;
    std::vector<std::size_t> inputs = {};   // incoming streams, of the other members in their order
    std::vector<std::size_t> outputs = {};  // outgoing streams of the result
    std::unique_ptr<std::byte[]> staging = {};
  };

  void plan(const Meeting& m);
  void plan_all_reduce(const Meeting& m);
  void plan_reduce_scatter(const Meeting& m);
  void plan_all_gather(const Meeting& m);
  void plan_all_to_all(const Meeting& m);
  void plan_broadcast(const Meeting& m);
  void plan_scattered_broadcast(const Meeting& m, std::uint32_t root);
  void plan_pair(const Meeting& m);

  std::size_t bytes_of(std::int64_t elements) const;
  std::size_t send_to(const Meeting& m, std::uint32_t member, const std::byte* data,
                      std::size_t size, std::size_t ready, int phase);
  std::size_t receive_from(const Meeting& m, std::uint32_t member, std::byte* data,
                           std::size_t size, int phase);
  void add_stage(const Meeting& m, const std::byte* own, std::byte* result, std::size_t size);
  bool advance_stream(Transport& transport, Stream& stream, bool outgoing);
  bool advance_stage();
  void reduce_piece(std::size_t size);

  Reduction reduction_;
  DType dtype_;
  std::size_t piece_;
  std::vector<Stream> outgoing_, incoming_;
  std::vector<Link> forwards_;  // from incoming to outgoing
  std::vector<Link> guards_;    // from outgoing to incoming: memory is written after it was sent
  std::optional<Stage> stage_;
};

}  // namespace plugrad::distributed
