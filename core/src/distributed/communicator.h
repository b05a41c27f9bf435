// The backend by MPI: one thread makes every call of MPI, so that started calls make progress while
// the program computes.
//
// A call goes through three states. Arriving: every member tells the others which call it has
// started, and all must agree. Moving: data is on its way. Done, or failed. A member that is not
// there in time, or differs, breaks the communicator for good: it tells all ranks why, gives its
// receives up, fails its calls and makes no more calls of MPI.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "distributed/backend.h"
#include "distributed/control.h"
#include "distributed/control_line.h"
#include "distributed/data/movement.h"
#include "distributed/processes.h"
#include "distributed/transport.h"

namespace plugrad::distributed {

struct Failure {
  ErrorKind kind = ErrorKind::Device;
  std::string text;
};

struct Pending {
  Call call;
  Hash128 channel;
  std::uint64_t number = 0, history = 0;
  std::uint32_t self = 0;  // this rank's place in the group
  std::int32_t tag = 0;
  std::uint64_t limit_ns = 0;
  // The communication thread's.
  std::uint64_t moved_ns = 0;                   // of the start, then of the last progress
  std::uint64_t asked_ns = 0;                   // since when late members are asked to answer
  std::vector<std::optional<Control>> arrived;  // by member; this rank's stays empty
  std::optional<Movement> movement;
  // Guarded by the communicator's mutex.
  bool is_done = false;
  std::uint64_t done_ns = 0;
  std::optional<Failure> failure;
};

/// Facts from the launcher and the program, known before MPI is initialised.
struct Beginning {
  std::uint32_t size = 1;      ///< by the launcher; 0: it does not say
  std::string program;         ///< equal in every rank
  std::string wrong_size;      ///< the error if MPI has another size
  std::uint64_t limit_ns = 0;  ///< of the start and the end
};

/// Lives until the process ends.
class Communicator final : public Backend {
 public:
  Communicator(Transport transport, Beginning beginning);
  ~Communicator() override = default;

  /// Initialises MPI and waits until every rank is there. Errors: Device if MPI fails or a rank is
  /// not there in time; User if MPI has another size than the launcher says, or if another rank
  /// runs another program or version.
  void begin();
  /// Leaves when every rank does. If the communicator is broken, ends the processes of all ranks,
  /// this one included.
  void end();

  std::uint32_t rank() const override { return transport_.rank(); }
  std::uint32_t size() const override { return transport_.size(); }
  std::string name() const override { return transport_.library(); }
  Request start(Call call) override;
  std::uint64_t wait(const Request& request) override;
  bool is_done(const Request& request) override;

 private:
  enum class State { Opening, Open, Breaking, Broken, Ended };
  using Shared = std::shared_ptr<Pending>;
  struct Peer {
    bool has_left = false, has_broken = false, is_silent = false;
    ProcessPlace place = {};
    std::uint64_t heard_ns = 0;  // when its last message arrived
    std::string position;        // of its last Pong
    std::string last_error;      // of its Bye; may be empty
  };
  struct Channel {
    std::uint64_t count = 0, history = 0;
  };
  using ChannelKey = std::pair<std::uint64_t, std::uint64_t>;
  using ArrivalKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

  // For how long a caller has seen the communication thread not move. Counted in the caller's own
  // turns of waiting, so that a time in which the whole process was stopped does not count.
  struct Stall {
    std::uint64_t beat_ns = 0, turns = 0;
  };

  // Callers.
  void require_usable(const Call& call);
  void number_call(Pending& call);
  bool is_stuck(Stall& stall, std::uint64_t limit_ns) const;
  void fail_stuck(Pending& call);
  std::vector<std::uint32_t> ended_ranks(const std::vector<std::uint32_t>& ranks) const;
  void end_processes();

  // The communication thread.
  void run_thread();
  void serve();
  void take_started();
  void add(const Shared& call);
  void read_control();
  void handle(const Control& control, std::uint32_t source);
  void handle_arrival(const Control& control, std::uint32_t source);
  void note_arrival(Pending& call, const Control& control, std::uint32_t source);
  void forgive_own_stop();
  void advance_calls();
  bool advance(Pending& call);
  void finish(const Shared& call);
  void check_deadlines();
  void fail_late(const Pending& call);
  void ask(const Pending& call);
  void watch_processes();
  std::vector<std::uint32_t> unfinished_ranks(const Pending& call) const;
  void leave();
  bool begin_to_break(Failure why);
  void continue_to_break();
  void publish_failure();
  void pause();

  Transport transport_;
  ControlLine control_;
  Beginning beginning_;
  int process_;
  std::atomic<std::uint64_t> beat_ns_{0};  // when the communication thread last went round

  std::mutex mutex_;  // guards what follows
  std::condition_variable to_thread_, to_callers_;
  State state_ = State::Opening;
  std::deque<Shared> started_;
  std::map<ChannelKey, Channel> channels_;
  std::int32_t next_tag_ = 0;
  bool shall_leave_ = false, shall_abort_ = false;
  std::optional<Failure> broken_;
  std::uint64_t broken_ns_ = 0;

  // The communication thread's.
  std::vector<Shared> calls_;
  std::vector<Peer> peers_;
  std::multimap<ArrivalKey, std::pair<std::uint32_t, Control>> early_;  // before this rank's call
  std::uint64_t bye_ns_ = 0, asked_ns_ = 0, breaking_ns_ = 0;
  ProcessPlace place_;
  std::uint64_t watched_ns_ = 0;  // when processes were last looked at
  std::string last_call_ = "no collective";
  std::atomic<bool> has_begun_{false};  // begin() has returned
  bool progressed_ = false;
  unsigned idle_rounds_ = 0;

  std::thread thread_;
};

}  // namespace plugrad::distributed
