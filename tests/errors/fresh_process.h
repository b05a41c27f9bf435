// Runs a piece of a program in a process of its own, so that it finds, opens and remembers plugins
// anew, under settings of its choice. What it throws comes back as text.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "base/log.h"
#include "base/settings.h"
#include "plugrad/error.h"

namespace plugrad {

struct Outcome {
  std::string error;  ///< "user: message"; empty when nothing was thrown
  std::string log;    ///< what went to the log
  bool survived = false;
};

namespace detail {

inline void append_to_string(std::string_view text, void* context) {
  static_cast<std::string*>(context)->append(text);
}

inline std::string run_to_text(const std::function<void(Settings&)>& change,
                               const std::function<void()>& body) {
  std::string log, error;
  set_log_sink(append_to_string, &log);
  try {
    change_settings(change);
    body();
  } catch (const Error& e) {
    error = std::string(to_string(e.kind())) + ": " + e.what();
  } catch (const std::exception& e) {
    error = std::string("not a plugrad::Error: ") + e.what();
  }
  return error + '\0' + log;
}

}  // namespace detail

inline Outcome run_in_fresh_process(const std::function<void(Settings&)>& change,
                                    const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  pid_t child = fork();
  if (child == 0) {
    std::string text = detail::run_to_text(change, body);
    for (std::size_t at = 0; at < text.size();) {
      ssize_t wrote = write(ends[1], text.data() + at, text.size() - at);
      if (wrote <= 0) _exit(1);
      at += static_cast<std::size_t>(wrote);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  std::size_t end = text.find('\0');
  bool survived = WIFEXITED(status) && WEXITSTATUS(status) == 0 && end != text.npos;
  return {text.substr(0, end), survived ? text.substr(end + 1) : "", survived};
}

}  // namespace plugrad
