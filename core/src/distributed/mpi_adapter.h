/* The functions that core needs of MPI. One library for each MPI implements them
   (libplugrad_mpi_mpich.so, …), as interface PLUGRAD_MPI_INTERFACE of a component. Every call is made
   by the one thread that called `open`. Functions return 0, or another number with a text in
   `error`. */
#ifndef PLUGRAD_MPI_ADAPTER_H
#define PLUGRAD_MPI_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#define PLUGRAD_MPI_INTERFACE "plugrad.mpi"
#define PLUGRAD_MPI_ANY_RANK (-1)
#define PLUGRAD_MPI_ERROR_BYTES 512

typedef struct plugrad_mpi_error {
  char text[PLUGRAD_MPI_ERROR_BYTES];
} plugrad_mpi_error;

typedef struct plugrad_mpi_place {
  int32_t rank, size;
  char library[128]; /* "MPICH 4.0.2" */
} plugrad_mpi_place;

typedef struct plugrad_mpi_arrival {
  int32_t source;
  uint64_t size_bytes;
} plugrad_mpi_arrival;

/* `request` is a number of the library for a message in transit. */
typedef struct plugrad_mpi_api {
  uint32_t struct_size; /* sizeof as compiled */
  /* Initialises MPI, or uses what another library of the process has initialised with
     MPI_THREAD_MULTIPLE. Collective, may block for ever. */
  int (*open)(plugrad_mpi_place* out, plugrad_mpi_error* error);
  /* Starts to send at most 2^30 bytes, which stay valid until test() says that it is done. */
  int (*send)(int32_t to, int32_t tag, const void* data, uint64_t size_bytes, uint64_t* request,
              plugrad_mpi_error* error);
  /* `from` may be PLUGRAD_MPI_ANY_RANK. */
  int (*receive)(int32_t from, int32_t tag, void* data, uint64_t size_bytes, uint64_t* request,
                 plugrad_mpi_error* error);
  /* Does not block. After *done the request is no more. `arrival` may be null. */
  int (*test)(uint64_t* request, int* done, plugrad_mpi_arrival* arrival, plugrad_mpi_error* error);
  /* Gives a receive up; its memory is not written after that. Collective calls of others go on. */
  int (*cancel_receive)(uint64_t* request, plugrad_mpi_error* error);
  /* Ends what `open` has begun. Collective, may block. */
  int (*close)(plugrad_mpi_error* error);
  /* Ends every process of the program. */
  void (*abort)(int exit_code);
} plugrad_mpi_api;

#endif
