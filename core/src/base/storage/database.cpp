// Connections are closed before a fork, as SQLite's locks belong to the process that took them;
// both processes reopen theirs on demand.
#include "base/storage/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/log.h"

namespace plugrad {
namespace {

constexpr int kBusyMs = 10'000;  // ms; other processes write for milliseconds at most
constexpr int kRetryMs = 2;
constexpr int kApplication = 0x50475244;  // "PGRD": SQLite's application_id of our files

// Magic numbers of statfs(2): NFS, SMB2, CIFS, 9P, Lustre, Ceph, GPFS, AFS.
constexpr std::array<uint32_t, 8> kNetworkFileSystems = {
    0x6969, 0xfe534d42, 0xff534d42, 0x01021997, 0x0bd00bd0, 0x00c36400, 0x47504653, 0x5346414f};

// WAL needs shared memory, which processes on several machines do not have.
bool is_on_network(const std::string& path) {
  struct statfs info;
  if (statfs(folder_of(path).c_str(), &info) != 0) return false;
  return std::ranges::count(kNetworkFileSystems, static_cast<uint32_t>(info.f_type)) > 0;
}

// "/dev/null" stands for no database.
bool is_null(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
}

bool is_damage(int code) {
  return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
}

// Whether the file was once a SQLite database.
bool has_magic(const std::string& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  const FileDescriptor file = open_regular_file(path);
  char start[kMagic.size()];
  return file && pread(file.get(), start, sizeof start, 0) == sizeof start &&
         std::memcmp(start, kMagic.data(), sizeof start) == 0;
}

struct OpenDatabases {
  std::mutex mutex;
  std::vector<Database*> list;
};
OpenDatabases& open_databases() {
  static auto* all = new OpenDatabases;  // used until exit
  return *all;
}

}  // namespace

void close_all_before_fork() {
  open_databases().mutex.lock();
  for (Database* database : open_databases().list) {
    database->mutex_.lock();
    database->close();
  }
}

void unlock_all_after_fork() {
  for (Database* database : open_databases().list) database->mutex_.unlock();
  open_databases().mutex.unlock();
}

// The last process to close a file moves its WAL into it; otherwise the next one reads all of it.
void close_all_at_exit() {
  close_all_before_fork();
  unlock_all_after_fork();
}

Statement::Statement(sqlite3* connection, std::string_view sql) : connection_(connection) {
  const int code = sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()),
                                      &statement_, nullptr);
  if (code != SQLITE_OK) fail(code);
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

void Statement::fail(int code) const {
  const int error = sqlite3_system_errno(connection_);
  const bool is_of_system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  throw DatabaseError{code,
                      is_of_system && error ? std::strerror(error) : sqlite3_errmsg(connection_)};
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(code);
  return code == SQLITE_ROW;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string_view Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {text ? text : "", static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

std::span<const std::byte> Statement::blob(int column) const {
  const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

void Statement::set(int number, int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_, number, value)) fail(code);
}

void Statement::set(int number, double value) {
  if (const int code = sqlite3_bind_double(statement_, number, value)) fail(code);
}

void Statement::set(int number, std::string_view value) {
  if (const int code = sqlite3_bind_text64(statement_, number, value.data(), value.size(),
                                           SQLITE_STATIC, SQLITE_UTF8))
    fail(code);
}

void Statement::set(int number, std::span<const std::byte> value) {
  const void* bytes = value.empty() ? "" : static_cast<const void*>(value.data());
  if (const int code = sqlite3_bind_blob64(statement_, number, bytes, value.size(), SQLITE_STATIC))
    fail(code);
}

Database::Database(std::string path, const Description& description, bool is_in_cache)
    : path_(std::move(path)), description_(description), is_in_cache_(is_in_cache) {
  static const int registered =
      pthread_atfork(close_all_before_fork, unlock_all_after_fork, unlock_all_after_fork) |
      std::atexit(close_all_at_exit) | std::at_quick_exit(close_all_at_exit);
  static_cast<void>(registered);
  const std::lock_guard lock(open_databases().mutex);
  open_databases().list.push_back(this);
}

Database::~Database() {
  const std::lock_guard lock(open_databases().mutex);
  std::erase(open_databases().list, this);
  close();
}

void Database::close() {
  sqlite3_close(connection_);
  connection_ = nullptr;
}

void Database::warn_once(std::string_view text) {
  if (!was_warned_)
    log_warning("{} {}: {}; {}", description_.purpose, path_, text, description_.without);
  was_warned_ = true;
}

// Whether the path names a file that may be opened, or does not exist yet.
bool Database::is_usable(Access access) {
  if (path_.empty()) return false;
  struct stat info;
  if (stat(path_.c_str(), &info) != 0) {
    if (access == Access::Read) return false;
    std::error_code ignored;
    if (is_in_cache_) std::filesystem::create_directories(folder_of(path_), ignored);
    return true;
  }
  if (is_null(info)) return false;
  if (!S_ISREG(info.st_mode)) {
    warn_once(file_error_text(S_ISDIR(info.st_mode) ? EISDIR : kNotRegular));
    return false;
  }
  const bool is_own = info.st_uid == geteuid() || info.st_uid == 0;
  if (description_.is_trusted && (!is_own || (info.st_mode & S_IWOTH))) {
    warn_once("another user can write it, and is not used");
    return false;
  }
  return true;
}

void Database::open() {
  const bool exists = ::access(path_.c_str(), F_OK) == 0;
  const bool is_writable = ::access(exists ? path_.c_str() : folder_of(path_).c_str(), W_OK) == 0 &&
                           ::access(folder_of(path_).c_str(), W_OK) == 0;
  is_read_only_ = exists && !is_writable;
  // A read-only folder has no room for the lock files of SQLite.
  const std::string uri = is_read_only_ ? "?mode=ro&immutable=1" : "";
  std::string escaped;
  for (const char c : path_)
    escaped += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02X}", c) : std::string(1, c);
  const int flags =
      SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
      (is_read_only_ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  errno = 0;
  const int code = sqlite3_open_v2(("file:" + escaped + uri).c_str(), &connection_, flags, nullptr);
  if (code != SQLITE_OK) {
    const int error = connection_ ? sqlite3_system_errno(connection_) : 0;
    const std::string text = error ? std::strerror(error) : sqlite3_errstr(code);
    close();
    throw DatabaseError{code, text};
  }
  sqlite3_busy_timeout(connection_, kBusyMs);
  int keeps_wal = 1;  // emptied at close, as files are slow to create
  sqlite3_file_control(connection_, "main", SQLITE_FCNTL_PERSIST_WAL, &keeps_wal);
  if (!is_read_only_) prepare_schema_in_turn();
  struct stat info;
  if (stat(path_.c_str(), &info) == 0) file_ = info.st_ino;
}

// SQLite does not wait where another process switches to WAL at the same time: it fails at once.
void Database::prepare_schema_in_turn() {
  for (int waited_ms = 0;; waited_ms += kRetryMs) try {
      return prepare_schema();
    } catch (const DatabaseError& error) {
      if ((error.code & 0xff) != SQLITE_BUSY || waited_ms >= kBusyMs) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(kRetryMs));
    }
}

void Database::prepare_schema() {
  const auto pragma = [&](const char* name) {
    Statement statement(connection_, fmt::format("PRAGMA {}", name));
    return statement.step() ? statement.integer(0) : 0;
  };
  const auto execute = [&](const std::string& sql) {
    if (const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr))
      throw DatabaseError{code, sqlite3_errmsg(connection_)};
  };
  const bool is_new = pragma("schema_version") == 0;  // before the others: all are set together
  const int64_t application = pragma("application_id"), version = pragma("user_version");
  if (!is_new && application != kApplication)
    throw DatabaseError{SQLITE_MISUSE, "it is another program's database and stays as it is"};
  if (!is_new && version != description_.version)
    throw DatabaseError{SQLITE_MISUSE,
                        fmt::format("it is of another version of plugrad ({}, not {}) and stays as "
                                    "it is",
                                    version, description_.version)};
  if (is_on_network(path_)) {
    log_line(LogLevel::Info, fmt::format("{} {}: on a network file system, where writers wait for "
                                         "each other",
                                         description_.purpose, path_));
    execute("PRAGMA journal_mode=TRUNCATE");
  } else {
    execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=0");
  }
  if (!is_new) return;
  execute(
      fmt::format("BEGIN IMMEDIATE; PRAGMA application_id={}; PRAGMA user_version={}; {}; COMMIT",
                  kApplication, description_.version, description_.schema));
}

// Whether the path still names the open file: users delete caches by hand.
bool Database::is_still_there() const {
  struct stat info;
  return stat(path_.c_str(), &info) == 0 && info.st_ino == file_;
}

bool Database::run_once(Call call, void* context, Access access) {
  if (connection_ && !is_still_there()) close();
  if (!connection_) {
    if (!is_usable(access)) return false;
    open();
  }
  sqlite3_busy_timeout(connection_, access == Access::WriteIfIdle ? 0 : kBusyMs);
  if (access == Access::Read) {
    call(context, connection_);
    return true;
  }
  if (is_read_only_) throw DatabaseError{SQLITE_READONLY, "it cannot be written"};
  const NoFileSizeSignal quiet;
  Statement(connection_, "BEGIN IMMEDIATE").step();
  try {
    call(context, connection_);
    Statement(connection_, "COMMIT").step();
  } catch (...) {
    sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
  return true;
}

bool Database::run(Call call, void* context, Access access) {
  const std::lock_guard lock(mutex_);
  for (const bool is_again : {false, true}) try {
      return run_once(call, context, access);
    } catch (const DatabaseError& error) {
      const bool is_busy = (error.code & 0xff) == SQLITE_BUSY;
      if (access == Access::WriteIfIdle && is_busy) return false;
      if (is_damage(error.code) && !is_again && set_aside()) continue;
      if (access == Access::Read || access == Access::Write) warn_once(error.text);
      close();
      return false;
    }
  return false;
}

// Another process may have found the damage first, so check again with the lock held.
bool Database::set_aside() {
  close();
  if (!is_in_cache_ && !has_magic(path_)) return false;
  const std::string aside = path_ + ".damaged";
  const FileDescriptor lock(::open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock || flock(lock.get(), LOCK_EX) != 0) return false;
  bool is_damaged = false;
  try {
    open();
    Statement check(connection_, "PRAGMA quick_check(1)");
    is_damaged = !check.step() || check.text(0) != "ok";
  } catch (const DatabaseError& error) {
    is_damaged = is_damage(error.code);
  }
  close();
  if (is_damaged) {
    if (rename(path_.c_str(), aside.c_str()) != 0) return false;
    for (const char* end : {"-wal", "-shm"}) unlink((path_ + end).c_str());
    log_warning("{} {}: the file is damaged and was set aside as {}; a new one is begun",
                description_.purpose, path_, aside);
  }
  unlink((path_ + ".lock").c_str());
  return true;
}

}  // namespace plugrad
