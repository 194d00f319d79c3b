"""The entry point of the command line, which Ctrl-C ends in time."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

from censored_gp.cli.commands import app

# Seconds after Ctrl-C in which a command may end by itself.
PATIENCE = 1.5


def run() -> None:
    """Run the command line; after Ctrl-C it ends within two seconds, whatever it is doing.

    The interpreter handles a signal between two of its steps, and so not while XLA compiles.
    """
    asked, (receiver, sender) = threading.Event(), socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno())

    def watch() -> None:
        # Other signals are told as well, and nothing at all where the command has ended.
        while (told := receiver.recv(1)) != bytes([signal.SIGINT]):
            if not told:
                return
        asked.set()
        time.sleep(PATIENCE)
        os.write(2, b"Interrupted.\n")
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
    try:
        app()
    except BaseException:
        # All that is left to do is to end.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not asked.is_set():
            raise
        # What had to be written is written.
        sys.stdout.flush()
        os._exit(130)
