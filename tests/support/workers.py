"""What workers of a pool are asked to do in tests: they must find it by import."""

import os
import time


def threads(settings):
    return {"threads": float(os.environ["OMP_NUM_THREADS"])}


def die(settings):
    os._exit(1)


def tell_who_and_wait(settings):
    with open(settings["file"], "w") as file:
        file.write(str(os.getpid()))
    time.sleep(120)
    return {"waited": 1.0}


def who(settings):
    time.sleep(0.05)
    return {"process": float(os.getpid())}


def die_at_three(settings):
    if settings["number"] == 3:
        os._exit(1)
    return {"number_again": float(settings["number"])}
