"""Programs of several processes, started by mpirun or srun.

    from plugrad import distributed

    distributed.init()
    mesh = plugrad.Mesh({"data": distributed.size()})  # the default device of each process
    if distributed.rank() == 0:
        print("training on", mesh)

Without a launcher the program is rank 0 of 1.
"""
from ._plugrad._distributed import *  # noqa: F403
