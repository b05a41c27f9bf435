// The same as by_plugrad.cpp by MPI_Allreduce: by_mpi MEGABYTES ROUNDS.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const auto count = static_cast<std::size_t>(std::atof(argv[1]) * 1e6) / sizeof(float);
  std::vector<float> values(count, 1), sums(count);
  for (int round = 0; round < std::atoi(argv[2]); ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Allreduce(values.data(), sums.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    if (rank == 0) std::printf("%.9f\n", MPI_Wtime() - start);
  }
  const bool is_right = sums[count - 1] == static_cast<float>(ranks);
  MPI_Finalize();
  return is_right ? 0 : 1;
}
