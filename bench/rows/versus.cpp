#include "bench/rows/versus.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/check.h"
#include "base/file.h"
#include "base/settings.h"

namespace plugrad::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kTurns = 7;
constexpr double kSlow = 6;  // times the seconds of a turn

// Folder for exchanging inputs and results.
class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    const bool usable = access(memory.c_str(), W_OK) == 0;
    std::string path =
        ((usable ? memory : fs::temp_directory_path()) / "plugrad-bench-XXXXXX").string();
    if (!mkdtemp(path.data())) throw std::runtime_error("no temporary directory");
    path_ = path;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Contender {
  std::string name, program;
  bool counts;                                              // rows are compared with it
  std::function<std::vector<double>(double seconds)> turn;  // timings; empty if the peer has died
  std::vector<double> times = {};
  double last_turn = 0;
};

std::vector<double> our_turn(const Round& round, double seconds) {
  std::vector<double> times;
  double total = 0;
  round();
  while (times.size() < 2 || total < seconds) {
    times.push_back(round());
    total += times.back();
  }
  return times;
}

void write_inputs(const std::string& path, const Subject& subject) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& input : subject.inputs) parts.push_back(std::as_bytes(std::span(input)));
  const int error = replace_file(path, parts, {.sync = false});
  require(error == 0, "[bench] the peers' inputs cannot be written to {}: {}", path,
          file_error_text(error));
}

std::vector<float> read_floats(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) return {};
  std::vector<float> values(bytes->size() / sizeof(float));
  std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
  return values;
}

struct Difference {
  double apart = 0;  // largest difference relative to the largest value; infinite for NaN
  size_t place = 0;
};

Difference difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  double largest = 1e-30;
  Difference most;
  for (size_t i = 0; i < ours.size(); ++i) {
    const double d = std::fabs(double{ours[i]} - double{theirs[i]});
    if (!(d < INFINITY)) return {INFINITY, i};
    if (d > most.apart) most = {d, i};
    largest = std::max(largest, std::fabs(double{theirs[i]}));
  }
  return {most.apart / largest, most.place};
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

// Prepares every available peer, and compares.
class Meeting {
 public:
  Meeting(const Case& row, Peers& peers, Subject subject)
      : row_(row), subject_(std::move(subject)) {
    ours_ = subject_.result();
    contenders_.push_back(
        {"plugrad", "", false, [this](double s) { return our_turn(subject_.round, s); }});
    write_inputs(folder_.file("in"), subject_);
    for (const PeerProgram& program : peer_programs())
      if (PeerProcess* process = peers.open(program, row.threads, row.is_processor_time))
        invite(program, *process);
  }

  bool agrees() const { return agrees_; }

  Result result() {
    for (int turn = 0; turn < kTurns; ++turn)
      for (Contender& c : contenders_) {
        if (turn >= row_.least_turns && c.last_turn > kSlow * row_.turn_seconds) continue;
        c.last_turn = time_of([&] {
          const auto times = c.turn(row_.turn_seconds);
          c.times.insert(c.times.end(), times.begin(), times.end());
        });
      }
    return summary();
  }

 private:
  void invite(const PeerProgram& program, PeerProcess& process) {
    nlohmann::json request = row_.options;
    request.update({{"do", "setup"},
                    {"kind", row_.kind},
                    {"shapes", subject_.shapes},
                    {"threads", row_.threads},
                    {"calls", row_.calls},
                    {"processor_time", row_.is_processor_time},
                    {"input", folder_.file("in")},
                    {"output", folder_.file(program.name)}});
    if (!subject_.names.empty()) request["names"] = subject_.names;
    const auto answer = process.ask(request);
    if (!answer) {
      fmt::print(stderr, "bench: {}: {} failed\n", row_.name, program.title);
      return;
    }
    const auto& names = answer->at("variants");
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string file = fmt::format("{}.{}", folder_.file(program.name), i);
      if (fs::exists(file)) compare(names[i], read_floats(file));
      contenders_.push_back(
          {names[i], program.name, process.keeps_to(chosen_isa()), [&process, i](double seconds) {
             const auto got = process.ask({{"do", "turn"}, {"variant", i}, {"seconds", seconds}});
             return got ? got->at("times").get<std::vector<double>>() : std::vector<double>{};
           }});
    }
  }

  void compare(const std::string& name, const std::vector<float>& theirs) {
    if (ours_.size() == theirs.size()) {
      const auto [apart, place] = difference(ours_, theirs);
      if (apart <= row_.tolerance) return;
      fmt::print(stderr,
                 "bench: {}: the result differs from that of {} by {:.2g} of its largest value: "
                 "element {} is {} and not {}; no row\n",
                 row_.name, name, apart, place, ours_[place], theirs[place]);
    } else {
      fmt::print(stderr, "bench: {}: {} gives {} values and not {}; no row\n", row_.name, name,
                 theirs.size(), ours_.size());
    }
    agrees_ = false;
  }

  Result summary() const {
    Result result{.name = row_.name,
                  .value = row_.value(median(contenders_[0].times)),
                  .unit = row_.unit,
                  .higher_is_better = row_.higher_is_better()};
    result.threads = row_.threads, result.flops = row_.flops, result.bytes = row_.bytes;
    result.seconds = median(contenders_[0].times);
    for (const Contender& c : contenders_) {
      if (c.program.empty() || c.times.empty()) continue;
      const Peer peer{c.name, row_.value(median(c.times))};
      result.peers.push_back(peer);
      const bool judges = c.counts && std::find(row_.judges.begin(), row_.judges.end(),
                                                c.program) != row_.judges.end();
      const bool better =
          !result.peer || (result.higher_is_better ? peer.value > result.peer->value
                                                   : peer.value < result.peer->value);
      if (judges && better) result.peer = peer;
    }
    return result;
  }

  const Case& row_;
  Subject subject_;
  Folder folder_;
  std::vector<float> ours_;
  std::vector<Contender> contenders_;
  bool agrees_ = true;
};

}  // namespace

std::optional<Result> measure_case(const Case& row, Peers& peers,
                                   const std::function<Subject(const Case&)>& make) {
  Case mine = row;
  if (mine.threads == 0) mine.threads = thread_count();
  ThreadScope scope(mine.threads);
  // Ignores search results from the user or from other rows.
  const Folder found;
  const SettingScope search([&](Settings& s) {
    s.schedule_database = found.file("search.tsv");
    s.beam = mine.is_searched ? 4 : 0;
    s.beam_seconds = 15;
  });
  Meeting meeting(mine, peers, make(mine));
  if (!meeting.agrees()) return std::nullopt;
  return meeting.result();
}

}  // namespace plugrad::bench
