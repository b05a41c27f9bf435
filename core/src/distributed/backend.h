// The interface to collectives between the processes of a program, on host memory: started and
// awaited. MPI is one backend; others may follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective_kind.h"
#include "plugrad/dtype.h"

namespace plugrad::distributed {

using Kind = CollectiveKind;

/// Of booleans, Add and Max are "or", Mul and Min are "and". Integers wrap around. Of floats, Max
/// and Min of a NaN are NaN; those of less than 32 bits are computed in f32 and rounded once for
/// each addition.
enum class Reduction : std::uint8_t { Add, Mul, Max, Min };
std::string_view name_of(Reduction reduction);

/// One collective as one rank sees it. Members of a group are counted in the order of `group`.
/// Parts lie one after another in the order of the members.
///
/// | kind          | send                     | receive               | counts             |
/// |---------------|--------------------------|-----------------------|--------------------|
/// | AllReduce     | all elements             | all, may equal send   | {all}              |
/// | ReduceScatter | the parts of all members | this member's part    | one part a member  |
/// | AllGather     | this member's part       | the parts of all      | one part a member  |
/// | AllToAll      | a part for each member   | one of each member    | of send, a member  |
/// | Broadcast     | all, at the root         | all, may equal send   | {all}              |
/// | Send          | all                      | not used              | {all}              |
/// | Receive       | not used                 | all                   | {all}              |
struct Call {
  Kind kind = Kind::AllReduce;
  Reduction reduction = Reduction::Add;
  DType dtype = DType::F32;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::vector<std::int64_t> counts = {};          ///< elements, each 0 or more
  std::vector<std::int64_t> receive_counts = {};  ///< of AllToAll: elements from each member
  std::vector<std::uint32_t> group =
      {};                    ///< ranks, ascending; has this rank. Not of Send and Receive
  std::uint32_t peer = 0;    ///< the root of Broadcast, the other rank of Send and Receive
  std::string tensor = {};   ///< named by errors
  std::string program = {};  ///< what the program has done before, alike in all members
};

struct Pending;  // a call that was started

/// A started call. A copy stands for the same call.
class Request {
 public:
  Request() = default;
  explicit Request(std::shared_ptr<Pending> call) : call_(std::move(call)) {}
  explicit operator bool() const { return call_ != nullptr; }
  const std::shared_ptr<Pending>& call() const { return call_; }

 private:
  std::shared_ptr<Pending> call_;
};

/// Thread-safe. Members must start the calls of one group in one order; the calls of different
/// groups, and of different pairs of Send and Receive, are independent of each other. The result of
/// a reduction does not depend on timing: contributions are reduced as a balanced binary tree in
/// the order of the members, (r0 + r1) + (r2 + r3); of three, (r0 + r1) + r2.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t size() const = 0;
  /// Name and version of the library, such as "MPICH 4.0.2".
  virtual std::string name() const = 0;

  /// Starts the call and returns; it makes progress without the caller. Its memory must stay valid,
  /// and `send` unchanged, until wait() has returned or thrown, or is_done() was true.
  /// Errors: User if the call is not well formed; that of wait() if an earlier call failed.
  virtual Request start(Call call) = 0;
  /// Blocks until this rank's part is complete; returns when it was, by monotonic_ns().
  /// Errors: User if members differ in what they call; Device if a rank is lost, or not there
  /// within settings().collective_seconds. Each names ranks, collective and tensor. Every later
  /// call fails with the same reason.
  virtual std::uint64_t wait(const Request& request) = 0;
  /// Whether wait() would not block.
  virtual bool is_done(const Request& request) = 0;

  /// start() and wait().
  void run(Call call) { wait(start(std::move(call))); }
};

/// The backend of this process; null before distributed::init().
Backend* backend();
/// Whether this thread called init(). Values move between processes in it alone: several threads
/// would start their collectives in another order in each process.
bool is_thread_of_init();

}  // namespace plugrad::distributed
