#include "runtime/checks/record/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/checks/record/recorded_call.h"

namespace plugrad::runtime {
namespace {

using nlohmann::json;

constexpr std::string_view kMagic = "PGRREC", kVersion = "01";
constexpr std::size_t kHeadBytes = 8;

struct ChunkHead {
  uint32_t json_bytes = 0, reserved = 0;
  uint64_t data_bytes = 0;
};

// Bytes that wait for the file, so that most calls do not enter the kernel.
constexpr std::size_t kMostWaitingBytes = 1 << 20;

}  // namespace

RecordingWriter::RecordingWriter(const std::string& path, const std::string& device)
    : path_(path),
      process_(::getpid()),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!file_) fail(ErrorKind::User, "[record] cannot write {}: {}", path, std::strerror(errno));
  add(as_bytes(kMagic));
  add(as_bytes(kVersion));
  write({{"call", "open"}, {"device", device}});
}

RecordingWriter::~RecordingWriter() {
  finish();
}

// The parent's file: a child would write into it.
bool RecordingWriter::is_open() const {
  return file_ && ::getpid() == process_;
}

void RecordingWriter::write_now(std::span<const std::byte> bytes) {
  const NoFileSizeSignal no_signal;
  while (file_ && !bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      log_warning("record: {}: the recording ends after {} calls: {}", path_, calls_,
                  std::strerror(written == 0 ? ENOSPC : errno));
      file_ = FileDescriptor();
      return;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void RecordingWriter::flush() {
  write_now(waiting_);
  waiting_.clear();
}

void RecordingWriter::add(std::span<const std::byte> bytes) {
  if (waiting_.size() + bytes.size() > kMostWaitingBytes) flush();
  if (bytes.size() > kMostWaitingBytes)
    write_now(bytes);
  else
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
}

void RecordingWriter::append(const json& call, std::span<const std::byte> data) {
  const std::string text = call.dump(-1, ' ', false, json::error_handler_t::replace);
  const ChunkHead head{static_cast<uint32_t>(text.size()), 0, data.size()};
  add(std::as_bytes(std::span(&head, 1)));
  add(as_bytes(text));
  add(data);
  ++calls_;
  if (call["call"] == "launch") flush();  // which may end the process
}

void RecordingWriter::write(const json& call, std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  if (is_open()) append(call, data);
}

void RecordingWriter::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;
  append({{"call", "end"}, {"calls", calls_}}, {});
  flush();
  file_ = FileDescriptor();
}

RecordingReader::RecordingReader(const std::string& path)
    : file_(std::make_unique<MappedFile>(path, "replay")) {
  const auto bytes = file_->bytes();
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min(bytes.size(), kHeadBytes));
  require(head.size() == kHeadBytes && head.starts_with(kMagic),
          "[replay] {} is no recording; PLUGRAD_LAYERS=record:file=F writes one", path);
  require(head.ends_with(kVersion),
          "[replay] {} is a recording of version {}; this program reads version {}", path,
          head.substr(kMagic.size()), kVersion);
  at_ = kHeadBytes;
}

RecordingReader::~RecordingReader() = default;

bool RecordingReader::next(RecordedCall& out) {
  const auto bytes = file_->bytes();
  ChunkHead head;
  if (is_over_ || bytes.size() - at_ < sizeof head) return false;
  std::memcpy(&head, bytes.data() + at_, sizeof head);
  const std::size_t left = bytes.size() - at_ - sizeof head;
  if (head.json_bytes > left || head.data_bytes > left - head.json_bytes) return false;
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + at_ + sizeof head;
  out.facts = json::parse(text, text + head.json_bytes, nullptr, false);
  require(out.facts.is_object() && out.facts.contains("call") && out.facts["call"].is_string(),
          "[replay] {}: call {} is damaged", file_->path(), calls_);
  out.data = bytes.subspan(at_ + sizeof head + head.json_bytes, head.data_bytes);
  at_ += sizeof head + head.json_bytes + head.data_bytes;
  if (out.facts["call"] == "end") {
    is_cut_off_ = false;
    is_over_ = true;
    return false;
  }
  ++calls_;
  return true;
}

}  // namespace plugrad::runtime
