#include "runtime/checks/record/recording.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/checks/record/recorded_call.h"

namespace plugrad::runtime {
namespace {

using nlohmann::json;

constexpr char kMagic[] = "PGRREC";
constexpr char kVersion[] = "01";
constexpr std::size_t kHeadBytes = 8;

struct ChunkHead {
  uint32_t json_bytes = 0, reserved = 0;
  uint64_t data_bytes = 0;
};

std::FILE* file_of(void* file) {
  return static_cast<std::FILE*>(file);
}

}  // namespace

void RecordingWriter::Close::operator()(void* file) const {
  std::fclose(file_of(file));
}

RecordingWriter::RecordingWriter(const std::string& path, const std::string& device)
    : path_(path), file_(std::fopen(path.c_str(), "wbe")) {
  if (!file_) fail(ErrorKind::User, "[record] cannot write {}: {}", path, std::strerror(errno));
  std::fwrite(kMagic, 1, sizeof kMagic - 1, file_of(file_.get()));
  std::fwrite(kVersion, 1, sizeof kVersion - 1, file_of(file_.get()));
  write({{"call", "open"}, {"device", device}});
}

RecordingWriter::~RecordingWriter() {
  finish();
}

void RecordingWriter::append(const json& call, std::span<const std::byte> data) {
  const std::string text = call.dump(-1, ' ', false, json::error_handler_t::replace);
  const ChunkHead head{static_cast<uint32_t>(text.size()), 0, data.size()};
  std::FILE* file = file_of(file_.get());
  const NoFileSizeSignal no_signal;
  const bool is_written =
      std::fwrite(&head, sizeof head, 1, file) == 1 &&
      std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
      (data.empty() || std::fwrite(data.data(), 1, data.size(), file) == data.size());
  ++calls_;
  if (is_written) return;
  log_warning("record: {}: the recording ends after {} calls: {}", path_, calls_,
              std::strerror(errno));
  file_.reset();
}

void RecordingWriter::write(const json& call, std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  if (file_) append(call, data);
}

void RecordingWriter::finish() {
  const std::lock_guard lock(mutex_);
  if (!file_) return;
  append({{"call", "end"}, {"calls", calls_}}, {});
  if (file_ && std::fflush(file_of(file_.get())) != 0)
    log_warning("record: {}: {}", path_, std::strerror(errno));
  file_.reset();
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
          head.substr(sizeof kMagic - 1), kVersion);
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
