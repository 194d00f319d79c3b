"""What workers of a pool are asked to do in tests: they must find it by import."""

import os


def threads(settings):
    return {"threads": float(os.environ["OMP_NUM_THREADS"])}
