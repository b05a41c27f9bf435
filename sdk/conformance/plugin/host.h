// The suite's own host: the process services for a plugin, with a record of their use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::conformance {

struct LogLine {
  uint32_t level;
  std::string text;
};

// Lives until the process exits, as its table must.
class Host {
 public:
  // One per library, made on first use.
  static Host& of(const std::string& library_path);

  const pgr_host_api& api() const { return api_; }
  const std::string& library_path() const { return library_path_; }

  std::vector<LogLine> log() const;
  // Blocks that the plugin allocated by host.alloc and has not freed.
  uint64_t live_allocations() const;
  uint64_t live_bytes() const;

 private:
  friend struct HostCalls;
  explicit Host(std::string library_path);

  std::string library_path_;
  pgr_host_api api_;
  mutable std::mutex mutex_;
  std::vector<LogLine> log_;
  std::map<void*, uint64_t> allocations_;
  std::map<std::string, std::string> cache_;
};

}  // namespace plugrad::conformance
