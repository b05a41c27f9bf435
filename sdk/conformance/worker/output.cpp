#include "conformance/worker/output.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace plugrad::conformance {
namespace {

constexpr off_t kMostPrintedBytes = 4 << 20;

}  // namespace

int make_output_file() {
  const int low = ::memfd_create("plugrad-conformance-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const int file = low < 0 ? -1 : ::fcntl(low, F_DUPFD_CLOEXEC, 10);
  if (low >= 0) ::close(low);
  // Its size is fixed, so that a plugin that prints without end fills no memory.
  if (file < 0 || ::ftruncate(file, kMostPrintedBytes) != 0 ||
      ::fcntl(file, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)
    throw std::runtime_error("no memory for what the worker prints");
  return file;
}

std::string read_output(int file) {
  const off_t size = std::clamp<off_t>(::lseek(file, 0, SEEK_CUR), 0, kMostPrintedBytes);
  std::string text(static_cast<size_t>(size), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace plugrad::conformance
