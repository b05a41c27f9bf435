#!/usr/bin/env python3
"""Checks the kernels of products on tensor cores, run on the double of libcuda: tiles are copied to
shared memory asynchronously, before their use. If ptxas is found, it assembles all PTX.

usage: products.py TESTS FOLDER_OF_THE_DOUBLE ARCH    TESTS: the test program; ARCH: 80, 90"""
import glob
import os
import subprocess
import sys
import tempfile

from on_double import assemble

# mma.sync with TF32; tests without shared memory or tensor cores are left out.
DTYPES = {"0": ("f16.f16", "bf16.bf16"), "1": ("tf32.tf32",)}


def main():
    tests, folder, arch = sys.argv[1:]
    for tf32, dtypes in DTYPES.items():
        with tempfile.TemporaryDirectory() as scratch:
            environment = dict(os.environ, LD_LIBRARY_PATH=folder, PLUGRAD_CUDA_DOUBLE_ARCH=arch, TF32=tf32,
                               PLUGRAD_CUDA_DOUBLE_PTX=scratch)
            done = subprocess.run([tests, "--gtest_filter=CudaTensorCores.Multiply*", "--gtest_brief=1"], env=environment)
            if done.returncode != 0:
                sys.exit("the tests failed")
            kernels = [open(path).read() for path in glob.glob(f"{scratch}/*.ptx")]
            for dtype in dtypes:
                products = [ptx for ptx in kernels if "mma.sync" in ptx and dtype in ptx]
                ahead = [ptx for ptx in products if "cp.async" in ptx and "cp.async.wait_group" in ptx]
                if not ahead:
                    sys.exit(f"none of {len(products)} products of {dtype} copies its tiles asynchronously")
                if not any("cp.async.cg.shared.global" in ptx for ptx in ahead):
                    sys.exit(f"no product of {dtype} copies 16 bytes at a time")
                print(f"sm_{arch}: {len(ahead)} of {len(products)} products of {dtype} copy their tiles asynchronously")
            assembled = assemble(scratch, arch)
            print(f"{len(kernels)} kernels; " +
                  (f"ptxas assembled {assembled}" if assembled is not None else "not assembled: SKIPPED, no ptxas was found"))


if __name__ == "__main__":
    main()
