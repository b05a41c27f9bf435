// A program of several ranks, one of which fails as the first argument says, at a time that follows
// from the second, a seed. Ranks report to the file of the third, as the launcher may be gone: the
// error that they get, after which they end with exit code 3.
//   fault 12.345678          the failing rank, with the time in seconds
//   error 2 14.351022 text   rank 2, likewise
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "plugrad/distributed.h"
#include "plugrad/error.h"
#include "ranks.h"

namespace plugrad::distributed::test {
namespace {

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

const char* report_path = nullptr;

void report(const std::string& text) {
  const int file = ::open(report_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (::write(file, text.data(), text.size()) < 0) std::abort();
  ::close(file);
}

void report_fault() {
  report("fault " + std::to_string(seconds()) + "\n");
}

struct Schedule {
  std::string fault;
  std::uint32_t victim;
  int step;             // at which it fails
  int delay_us;         // from the start of that step
  std::int64_t length;  // of the tensors
};

Schedule schedule_of(const char* fault, const char* seed) {
  std::mt19937 random(static_cast<unsigned>(std::atoi(seed)));
  const auto ranks = count_of_ranks();
  return {.fault = fault,
          .victim = static_cast<std::uint32_t>(random() % ranks),
          .step = static_cast<int>(3 + random() % 20),
          .delay_us = static_cast<int>(random() % 20000),
          .length = random() % 2 ? 100 : 2'000'000 + static_cast<int>(random() % 1000)};
}

void reduce(const std::string& tensor, std::int64_t length, DType dtype = DType::F32,
            const std::string& program = "2 functions") {
  std::vector<float> values(static_cast<std::size_t>(length), 1);
  backend()->run({.kind = Kind::AllReduce,
                  .dtype = dtype,
                  .send = bytes(values),
                  .receive = bytes(values),
                  .counts = {length},
                  .group = all_ranks(),
                  .tensor = tensor,
                  .program = program});
}

void gather(const std::string& tensor, std::int64_t length) {
  std::vector<float> own(static_cast<std::size_t>(length)), all(own.size() * count_of_ranks());
  backend()->run({.kind = Kind::AllGather,
                  .send = bytes(own),
                  .receive = bytes(all),
                  .counts = std::vector<std::int64_t>(count_of_ranks(), length),
                  .group = all_ranks(),
                  .tensor = tensor,
                  .program = "2 functions"});
}

// The step in which the victim differs from the others; false if it ends its part.
bool fail_step(const Schedule& s) {
  report_fault();
  if (s.fault == "order") {
    gather("b", s.length);
    reduce("a", s.length);
  } else if (s.fault == "shape") {
    reduce("a", s.length + 1);
  } else if (s.fault == "dtype") {
    reduce("a", s.length, DType::I32);
  } else if (s.fault == "tensor") {
    reduce("c", s.length);
  } else if (s.fault == "program") {
    reduce("a", s.length, DType::F32, "3 functions");
  } else if (s.fault == "abort") {
    std::abort();
  } else if (s.fault == "late") {
    std::this_thread::sleep_for(std::chrono::seconds(8));
    reduce("a", s.length);
  }
  return s.fault != "end";
}

void run(const Schedule& s) {
  std::thread killer;
  for (int step = 0; step < 2000; ++step) {
    const bool fails = step == s.step && self() == s.victim;
    if (fails && (s.fault == "kill" || s.fault == "stop")) {
      killer = std::thread([&] {
        ::usleep(static_cast<useconds_t>(s.delay_us));
        report_fault();
        ::kill(::getpid(), s.fault == "kill" ? SIGKILL : SIGSTOP);
      });
      killer.detach();
    } else if (fails && !fail_step(s)) {
      return;
    }
    reduce("a", s.length);
    gather("b", s.length);
  }
}

}  // namespace
}  // namespace plugrad::distributed::test

int main(int, char** argv) {
  namespace test = plugrad::distributed::test;
  test::report_path = argv[3];
  try {
    plugrad::distributed::init();
    test::run(test::schedule_of(argv[1], argv[2]));
  } catch (const plugrad::Error& e) {
    const int rank = plugrad::distributed::is_initialized() ? plugrad::distributed::rank() : -1;
    test::report("error " + std::to_string(rank) + " " + std::to_string(test::seconds()) + " " +
                 e.what() + "\n");
    return 3;
  }
  return 0;
}
