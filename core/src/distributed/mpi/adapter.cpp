// The functions of mpi_adapter.h by one MPI, whose mpi.h this file is compiled with.
#include <mpi.h>
#include <signal.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "distributed/mpi_adapter.h"
#include "plugrad/plugin_api/plugin.h"

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));

MPI_Comm program = MPI_COMM_NULL;  // a communicator of our own: tags of others do not meet ours
bool initialised_here = false;

int check(int code, const char* call, plugrad_mpi_error* error) {
  if (code == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int size = 0;
  MPI_Error_string(code, text, &size);
  std::snprintf(error->text, sizeof error->text, "%s: %s", call, text);
  return 1;
}

int refuse(plugrad_mpi_error* error, const char* text) {
  std::snprintf(error->text, sizeof error->text, "%s", text);
  return 1;
}

std::uint64_t to_number(MPI_Request request) {
  std::uint64_t number = 0;
  std::memcpy(&number, &request, sizeof request);
  return number;
}

MPI_Request to_request(std::uint64_t number) {
  MPI_Request request;
  std::memcpy(&request, &number, sizeof request);
  return request;
}

// "MPICH 4.0.2" of "MPICH Version:\t4.0.2\n…"; "Open MPI 4.1.4" of "Open MPI v4.1.4, package: …".
void read_library(char* out, std::size_t capacity) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int size = 0;
  MPI_Get_library_version(text, &size);
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(text, "MPICH Version: %d.%d.%d", &major, &minor, &patch) == 3)
    std::snprintf(out, capacity, "MPICH %d.%d.%d", major, minor, patch);
  else if (std::sscanf(text, "Open MPI v%d.%d.%d", &major, &minor, &patch) == 3)
    std::snprintf(out, capacity, "Open MPI %d.%d.%d", major, minor, patch);
  else
    std::snprintf(out, capacity, "%.*s", static_cast<int>(std::strcspn(text, "\n,")), text);
}

// Hydra sends SIGUSR1 when a rank is lost, upon which MPICH asks the launcher which one that was, and
// ends the process if the launcher is gone too. Core finds lost ranks itself.
class KeepSigusr1 {
 public:
  KeepSigusr1() { sigaction(SIGUSR1, nullptr, &before_); }
  ~KeepSigusr1() {
    if (before_.sa_handler == SIG_DFL) before_.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &before_, nullptr);
  }
  KeepSigusr1(const KeepSigusr1&) = delete;
  KeepSigusr1& operator=(const KeepSigusr1&) = delete;

 private:
  struct sigaction before_{};
};

int initialise(plugrad_mpi_error* error) {
  int finalised = 0, initialised = 0, threads = 0;
  MPI_Finalized(&finalised);
  if (finalised) return refuse(error, "MPI_Finalize was already called in this process");
  MPI_Initialized(&initialised);
  if (!initialised) {
    initialised_here = true;
    const KeepSigusr1 keep;
    return check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads),
                 "MPI_Init_thread", error);
  }
  MPI_Query_thread(&threads);
  if (threads < MPI_THREAD_MULTIPLE)
    return refuse(error,
                  "MPI is already initialised, without MPI_THREAD_MULTIPLE: initialise it with "
                  "MPI_THREAD_MULTIPLE, or leave that to plugrad::distributed::init()");
  return 0;
}

int open_mpi(plugrad_mpi_place* out, plugrad_mpi_error* error) {
  if (int failed = initialise(error)) return failed;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (int failed = check(MPI_Comm_dup(MPI_COMM_WORLD, &program), "MPI_Comm_dup", error))
    return failed;
  MPI_Comm_set_errhandler(program, MPI_ERRORS_RETURN);
  int rank = 0, size = 0;
  MPI_Comm_rank(program, &rank);
  MPI_Comm_size(program, &size);
  out->rank = rank;
  out->size = size;
  read_library(out->library, sizeof out->library);
  return 0;
}

int send(std::int32_t to, std::int32_t tag, const void* data, std::uint64_t size_bytes,
         std::uint64_t* request, plugrad_mpi_error* error) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int code =
      MPI_Isend(data, static_cast<int>(size_bytes), MPI_BYTE, to, tag, program, &started);
  *request = to_number(started);
  return check(code, "MPI_Isend", error);
}

int receive(std::int32_t from, std::int32_t tag, void* data, std::uint64_t size_bytes,
            std::uint64_t* request, plugrad_mpi_error* error) {
  MPI_Request started = MPI_REQUEST_NULL;
  const int source = from == PLUGRAD_MPI_ANY_RANK ? MPI_ANY_SOURCE : from;
  const int code =
      MPI_Irecv(data, static_cast<int>(size_bytes), MPI_BYTE, source, tag, program, &started);
  *request = to_number(started);
  return check(code, "MPI_Irecv", error);
}

int test(std::uint64_t* request, int* done, plugrad_mpi_arrival* arrival,
         plugrad_mpi_error* error) {
  MPI_Request tested = to_request(*request);
  MPI_Status status;
  const int code = MPI_Test(&tested, done, &status);
  *request = to_number(tested);
  if (code == MPI_SUCCESS && *done && arrival) {
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    arrival->source = status.MPI_SOURCE;
    arrival->size_bytes = static_cast<std::uint64_t>(size);
  }
  return check(code, "MPI_Test", error);
}

int cancel_receive(std::uint64_t* request, plugrad_mpi_error* error) {
  MPI_Request given_up = to_request(*request);
  int code = MPI_Cancel(&given_up);
  if (code == MPI_SUCCESS) code = MPI_Request_free(&given_up);
  *request = to_number(given_up);
  return check(code, "MPI_Cancel", error);
}

int close_mpi(plugrad_mpi_error* error) {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised || !initialised_here) return 0;
  if (int failed = check(MPI_Comm_free(&program), "MPI_Comm_free", error)) return failed;
  return check(MPI_Finalize(), "MPI_Finalize", error);
}

void abort_mpi(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

constexpr plugrad_mpi_api kTable = {
    sizeof(plugrad_mpi_api), open_mpi, send, receive, test, cancel_receive, close_mpi, abort_mpi,
};

}  // namespace

extern "C" PGR_EXPORT pgr_status pgr_component_entry_v1(const pgr_host_api*,
                                                        const pgr_string* interface_name,
                                                        std::uint32_t, const void** out_table,
                                                        pgr_error*) {
  if (std::string_view(interface_name->data, interface_name->size) != PLUGRAD_MPI_INTERFACE)
    return PGR_STATUS_UNSUPPORTED;
  *out_table = &kTable;
  return PGR_STATUS_OK;
}
